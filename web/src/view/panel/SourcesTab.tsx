import { useEffect } from "react";
import { SourceLink } from "../../cards/SourcesCard";
import { t } from "../../i18n/i18n";
import type { Cited } from "../App";

/** The passages an answer was given; the one that was clicked comes into sight. */
export function SourcesTab({ cited }: { cited: Cited | null }) {
  useEffect(() => {
    if (cited !== null && cited.index > 0) document.getElementById(`source-${cited.index}`)?.scrollIntoView({ block: "nearest" });
  }, [cited]);
  const sources = cited?.entry.sources ?? [];
  if (sources.length === 0) return <p className="empty">{t("noSources")}</p>;
  return (
    <ol className="sources">
      {sources.map((source) => (
        <li key={source.index} id={`source-${source.index}`} value={source.index} className={source.index === cited?.index ? "cited" : ""}>
          <b>{source.title || source.id}</b>
          <blockquote>{source.text}</blockquote>
          <SourceLink source={source} />
        </li>
      ))}
    </ol>
  );
}
