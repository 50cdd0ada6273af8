/** The passages an answer was given: those it cites, the one that was asked for in sight, and the rest folded away. */

import { useEffect } from "react";
import { SourceLink } from "../../cards/SourcesCard";
import { t } from "../../i18n/i18n";
import type { Beside } from "../../state/beside";
import { coming } from "../../state/conversation";
import type { Conversation } from "../../state/conversation";
import { citedIn } from "../../text/markdown";
import { quotedIn } from "../../text/quoted";
import type { Shown, ShownText, Source } from "../../wire";
import { Quoted } from "../Quoted";

export function SourcesTab({ open, shown }: { open: Conversation; shown: Beside }) {
  useEffect(() => {
    const asked = document.getElementById(`source-${shown.source}`);
    void (asked?.querySelector("mark") ?? asked)?.scrollIntoView({ block: "nearest" });
  }, [shown]);
  const all: readonly Shown[] = [...open.entries, coming(open)].filter((entry) => entry !== null);
  const answer = all.find((entry) => entry.index === shown.entry) ?? all.findLast(hasSources);
  if (answer === undefined || !hasSources(answer)) return <p className="empty">{t("noSources")}</p>;
  const numbers = citedIn(answer.content, new Set(answer.sources.map((source) => source.index)));
  const cited = answer.sources.filter((source) => numbers.has(source.index));
  const rest = answer.sources.filter((source) => !numbers.has(source.index));
  return (
    <>
      {cited.length === 0 ? <p className="empty">{t("noSources")}</p> : <Passages sources={cited} asked={shown.source} answer={answer.content} />}
      {rest.length > 0 && (
        <details>
          <summary>{t("notCited", { count: rest.length })}</summary>
          <Passages sources={rest} />
        </details>
      )}
    </>
  );
}

function Passages({ sources, asked, answer = "" }: { sources: readonly Source[]; asked?: number | undefined; answer?: string }) {
  return (
    <ol className="sources">
      {sources.map((source) => (
        <li key={source.index} id={`source-${source.index}`} value={source.index} className={source.index === asked ? "cited" : ""}>
          <b>{source.title || source.id}</b>
          <blockquote><Quoted pieces={quotedIn(source.text, answer)} /></blockquote>
          <SourceLink source={source} />
        </li>
      ))}
    </ol>
  );
}

function hasSources(entry: Shown): entry is ShownText & { sources: Source[] } {
  return entry.kind === "Text" && entry.role === "assistant" && (entry.sources?.length ?? 0) > 0;
}
