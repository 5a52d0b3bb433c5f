"use strict";

// Keys belong to the terminal: from the moment that it is connected, and after every click, wherever that was.
(() => {
  const terminal = document.getElementById("terminal");

  function focus() {
    if (terminal.classList.contains("-connected")) {
      terminal.querySelector("textarea").focus({ preventScroll: true });
    }
  }

  new MutationObserver(focus).observe(terminal, { attributeFilter: ["class"] });
  addEventListener("click", focus);
  addEventListener("focus", focus);
})();
