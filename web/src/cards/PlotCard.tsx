import { t } from "../i18n/i18n";
import type { CardProps } from "./useCard";

/** A picture of data. */
export function PlotCard({ card }: CardProps) {
  const id = typeof card.imageId === "string" && /^[A-Za-z0-9_-]{1,128}$/.test(card.imageId) ? card.imageId : null;
  const words = String(card.altText || card.caption || card.title || t("picture"));
  return (
    <figure>
      {id === null ? <p className="problem">{t("pictureGone")}</p> : <img src={`/api/v1/files/${id}`} alt={words} loading="lazy" width={Number(card.width) || undefined} height={Number(card.height) || undefined} />}
      {card.caption ? <figcaption>{String(card.caption)}</figcaption> : null}
    </figure>
  );
}
