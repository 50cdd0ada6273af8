import { Cell } from "./store";

/** Text that some part of the page puts into the composer, which takes it and sets this back. */
export const added = new Cell("");
