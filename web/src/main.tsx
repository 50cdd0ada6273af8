import { createRoot } from "react-dom/client";
import { currentLanguage, speak } from "./i18n/i18n";
import { begin } from "./state/page";
import "./styles/tokens.css";
import "./styles/layout.css";
import "./styles/text.css";
import "./styles/cards.css";
import { App } from "./view/App";
import { applyTheme, theme } from "./view/theme";

speak(currentLanguage());
applyTheme(theme.get());
const place = document.getElementById("page");
if (place !== null) createRoot(place).render(<App />);
void begin();
