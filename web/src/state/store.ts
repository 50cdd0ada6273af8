/** A value that says when it changes. */

import { useSyncExternalStore } from "react";

export class Cell<T> {
  #listeners = new Set<() => void>();

  constructor(private value: T) {}

  get = (): T => this.value;

  set(next: T): void {
    if (Object.is(next, this.value)) return;
    this.value = next;
    for (const listener of this.#listeners) listener();
  }

  update(change: (value: T) => T): void {
    this.set(change(this.value));
  }

  listen = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

export function useCell<T>(cell: Cell<T>): T {
  return useSyncExternalStore(cell.listen, cell.get);
}
