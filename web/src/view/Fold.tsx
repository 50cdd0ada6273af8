/** Something folded away, unless `open`; what a person chose goes before that, and is known by `name` where it is drawn anew. */

import type { MouseEvent, ReactNode } from "react";
import { isUnfolded, keepUnfolded } from "../state/unfolded";

interface Props {
  name: string;
  className: string;
  open?: boolean;
  summary: ReactNode;
  children: ReactNode;
}

export function Fold({ name, className, open = false, summary, children }: Props) {
  const pressed = (event: MouseEvent<HTMLElement>) => keepUnfolded(name, !event.currentTarget.closest("details")?.open); // what it becomes
  return (
    <details className={className} open={isUnfolded(name) ?? open}>
      <summary onClick={pressed}>{summary}</summary>
      {children}
    </details>
  );
}
