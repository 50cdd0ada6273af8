/** Enter sends, Shift+Enter makes a new line: the same wherever words are written to be sent. */

import { useRef } from "react";
import type { KeyboardEvent } from "react";

const AFTER_COMPOSITION_MS = 50;

/** What a text box is given for that; keys that `first` takes are its own. */
export function useEnter(send: () => void, first: (event: KeyboardEvent) => boolean = () => false) {
  const composed = useRef(-AFTER_COMPOSITION_MS);
  const onKeyDown = (event: KeyboardEvent) => {
    const native = event.nativeEvent;
    // an input method's keys are its own: its Enter takes a word over and sends nothing
    if (native.isComposing || native.keyCode === 229 || performance.now() - composed.current < AFTER_COMPOSITION_MS) return;
    if (first(event) || event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    send();
  };
  const onCompositionEnd = () => {
    composed.current = performance.now();
  };
  return { onKeyDown, onCompositionEnd };
}
