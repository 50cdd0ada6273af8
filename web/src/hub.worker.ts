/** The shared worker: one hub, a port per tab. */

import type { Listener, ToHub } from "./hub";
import { Hub } from "./hub";

const hub = new Hub();

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = (event) => {
  const port = event.ports[0];
  if (port === undefined) return;
  const tab: Listener = (said) => port.postMessage(said);
  port.onmessage = ({ data }: MessageEvent<ToHub>) => {
    if ("leave" in data) hub.leave(tab);
    else hub.watch(tab, data.watch, data.after);
  };
};
