import { t } from "../i18n/i18n";
import type { Source } from "../wire";
import { listOf } from "./useCard";
import type { CardProps } from "./useCard";

/** The passages behind an answer; those it cites come marked. */
export function SourcesCard({ card }: CardProps) {
  const cited = new Set(listOf<number>(card.cited));
  const sources = listOf<Source>(card.sources);
  return (
    <ol className="sources">
      {sources.map((source) => (
        <li key={source.index} value={source.index} className={cited.has(source.index) ? "cited" : ""}>
          <details>
            <summary>
              {source.title || source.id} {cited.has(source.index) && <span className="badge">{t("cited")}</span>}
            </summary>
            <blockquote>{source.text}</blockquote>
            <SourceLink source={source} />
          </details>
        </li>
      ))}
    </ol>
  );
}

/** Where a passage is from: a link, or the place in a file, whose folder is nobody's business here. */
export function SourceLink({ source }: { source: Source }) {
  if (!source.url || !/^https?:\/\//i.test(source.url)) return source.id ? <p className="help">{source.id.replace(/^.*[\\/]/, "")}</p> : null;
  return <a href={source.url} target="_blank" rel="noopener noreferrer nofollow">{source.url}</a>;
}
