/** Other versions of what follows an entry: what regenerating and editing made, and arrows to go between them. */

import { useEffect, useState } from "react";
import { api } from "../api";
import { t } from "../i18n/i18n";
import { show } from "../state/page";
import { IconButton } from "./icons";

export interface Versions {
  index: number;
  conversationIds: string[];
}

/** Where a conversation has other versions; read again when an answer in it ended, which may be a new one. */
export function useVersions(id: string, answering: boolean): readonly Versions[] {
  const [all, setAll] = useState<readonly Versions[]>([]);
  useEffect(() => {
    if (answering) return;
    let wanted = true;
    api.branches(id).then(
      ({ items }) => wanted && setAll(items),
      () => wanted && setAll([]), // without the arrows the conversation is all there
    );
    return () => {
      wanted = false;
    };
  }, [id, answering]);
  return all;
}

/** Arrows for each place in `all`; what is said there stands beside them. */
export function BranchArrows({ id, all }: { id: string; all: readonly Versions[] }) {
  return all.map(({ index, conversationIds }) => <Arrows key={index} id={id} versions={conversationIds} />);
}

function Arrows({ id, versions }: { id: string; versions: readonly string[] }) {
  const at = versions.indexOf(id);
  if (versions.length < 2 || at < 0) return null;
  const go = (to: number) => void show(versions[to] ?? id);
  return (
    <span className="branches" role="group" aria-label={t("versions")}>
      <IconButton icon="back" label={t("versionBefore")} className="branch-before" disabled={at === 0} onClick={() => go(at - 1)} />
      <span>{at + 1}/{versions.length}</span>
      <IconButton icon="next" label={t("versionAfter")} className="branch-after" disabled={at === versions.length - 1} onClick={() => go(at + 1)} />
    </span>
  );
}
