/** One event stream for all tabs of a browser: what the shared worker runs, or one tab where there is none.
 *
 * A stream per tab would use up the six connections a browser allows a host. Tabs say which conversations they
 * show; the stream asks for all of those, and every event goes to every tab.
 */

import type { WireEvent } from "./wire";

export type Listener = (said: FromHub) => void;
export type FromHub = { event: WireEvent } | { online: boolean };
export type ToHub = { watch: string[]; after?: string } | { leave: true };

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

export class Hub {
  #tabs = new Map<Listener, ReadonlySet<string>>();
  #source: EventSource | null = null;
  #watched = "";
  #last: string | null = null;
  #wait = FIRST_WAIT_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly open: (url: string) => EventSource = (url) => new EventSource(url)) {}

  /** Add or change what one tab shows. `after` is the cursor of its newest snapshot. */
  watch(tab: Listener, conversations: string[], after?: string): void {
    this.#tabs.set(tab, new Set(conversations));
    if (this.#last === null && after !== undefined) this.#last = after;
    this.#connect(after);
  }

  leave(tab: Listener): void {
    this.#tabs.delete(tab);
    if (this.#tabs.size === 0) this.#close();
  }

  #connect(after?: string): void {
    const watched = [...new Set([...this.#tabs.values()].flatMap((set) => [...set]))].sort().join(",");
    const behind = after !== undefined && this.#last !== null && after !== this.#last && earlier(after, this.#last) === after;
    if (!behind && this.#source !== null && this.#source.readyState !== 2 && watched === this.#watched) return;
    this.#close();
    this.#watched = watched;
    // A new conversation was read at `after`; going back to the older of both repeats some events, which tabs ignore.
    const from = after !== undefined && this.#last !== null ? earlier(after, this.#last) : this.#last;
    const query = new URLSearchParams({ conversations: watched, ...(from === null ? {} : { after: from }) });
    const source = this.open(`/api/v1/events?${query}`);
    source.onopen = () => {
      this.#wait = FIRST_WAIT_MS;
      this.#say({ online: true });
    };
    source.onmessage = (message: MessageEvent<string>) => {
      if (message.lastEventId !== "") this.#last = message.lastEventId;
      const event = parsed(message.data);
      if (event !== null) this.#say({ event });
    };
    source.onerror = () => this.#again();
    this.#source = source;
  }

  #again(): void {
    this.#close();
    this.#say({ online: false });
    if (this.#tabs.size === 0) return;
    this.#timer = setTimeout(() => this.#connect(), this.#wait * (0.75 + Math.random() / 2));
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT_MS);
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #say(said: FromHub): void {
    for (const tab of this.#tabs.keys()) tab(said);
  }
}

function parsed(text: string): WireEvent | null {
  try {
    const event: unknown = JSON.parse(text);
    return typeof event === "object" && event !== null && "type" in event ? (event as WireEvent) : null;
  } catch {
    return null;
  }
}

/** The earlier of two cursors `epoch.seq`; of two epochs the first given, since the other is gone. */
export function earlier(one: string, other: string): string {
  const [left, right] = [one.lastIndexOf("."), other.lastIndexOf(".")];
  if (one.slice(0, left) !== other.slice(0, right)) return one;
  return Number(one.slice(left + 1)) <= Number(other.slice(right + 1)) ? one : other;
}
