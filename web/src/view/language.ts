/** The language that is spoken now: what is drawn once for good is drawn anew where that changes. */

import { createContext, useContext } from "react";
import { currentLanguage } from "../i18n/i18n";
import type { Language } from "../i18n/i18n";

export const Spoken = createContext<Language>(currentLanguage());

export const useLanguage = (): Language => useContext(Spoken);
