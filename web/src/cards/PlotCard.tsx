import { t } from "../i18n/i18n";
import { Picture } from "../view/Picture";
import type { CardProps } from "./useCard";

/** A picture of data, which can be looked at large. */
export function PlotCard({ card }: CardProps) {
  const id = typeof card.imageId === "string" && /^[A-Za-z0-9_-]{1,128}$/.test(card.imageId) ? card.imageId : null;
  const words = String(card.altText || card.caption || card.title || t("picture"));
  return (
    <figure>
      {id === null ? <p className="problem">{t("pictureGone")}</p> : <Picture source={`/api/v1/files/${id}`} words={words} width={Number(card.width) || undefined} height={Number(card.height) || undefined} />}
      {card.caption ? <figcaption>{String(card.caption)}</figcaption> : null}
    </figure>
  );
}
