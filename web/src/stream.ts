/** This tab's end of the event stream. */

import type { FromHub, ToHub } from "./hub";
import { Hub } from "./hub";

export interface Stream {
  watch(conversations: string[], after?: string): void;
}

export function connect(hear: (said: FromHub) => void): Stream {
  return "SharedWorker" in window ? shared(hear) : own(hear);
}

function shared(hear: (said: FromHub) => void): Stream {
  const worker = new SharedWorker(new URL("./hub.worker.ts", import.meta.url), { type: "module", name: "dialoom" });
  const say = (said: ToHub) => worker.port.postMessage(said);
  worker.port.onmessage = ({ data }: MessageEvent<FromHub>) => hear(data);
  worker.port.start();
  addEventListener("pagehide", () => say({ leave: true }));
  let watched: ToHub | null = null;
  addEventListener("pageshow", (event: Event) => {
    if ((event as PageTransitionEvent).persisted && watched !== null) say(watched);
  });
  return {
    watch: (conversations, after) => {
      watched = { watch: conversations, ...(after === undefined ? {} : { after }) };
      say(watched);
    },
  };
}

/** Without a shared worker a tab has its own stream, and none while it is hidden. */
function own(hear: (said: FromHub) => void): Stream {
  const hub = new Hub();
  let watched: string[] = [];
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hub.leave(hear);
    else hub.watch(hear, watched);
  });
  return {
    watch: (conversations, after) => {
      watched = conversations;
      hub.watch(hear, conversations, after);
    },
  };
}
