/** Writes the HTML around the user interface. The state of the cluster is written as data, never as HTML markup. */
import { hash } from 'node:crypto';
import type { UiFiles } from './bundle.ts';
import type { DashboardState } from './state.ts';

type Page =
  /** `isProxied` is true if a proxy signs the viewer in, so that the page cannot sign the viewer out. */
  | { readonly kind: 'served'; readonly isProxied?: boolean }
  | { readonly kind: 'file'; readonly files: UiFiles; readonly state: DashboardState };

export function pageOf(page: Page): string {
  const head = page.kind === 'served' ? SERVED : inlineHead(page.files);
  const body =
    page.kind === 'served'
      ? '<script type="module" src="ui.js"></script>'
      : `<script type="application/json" id="refit-state">${jsonInHtml(page.state)}</script><script type="module">${page.files.script}</script>`;
  const proxied = page.kind === 'served' && page.isProxied === true ? ' data-proxied' : '';
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>Refit</title>${head}</head><body><div id="refit"${proxied}></div>${body}</body></html>\n`;
}

/** The sign of the page in the tab: an arrow upwards. The browser needs no request for it. */
const PICTURE = encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#00538a"/><path d="M8 3l4 5H9.5v5h-3V8H4z" fill="#fff"/></svg>',
);
const ICON = `<link rel="icon" href="data:image/svg+xml,${PICTURE}">`;

const SERVED = `${ICON}<link rel="stylesheet" href="ui.css">`;

/**
 * Returns the head of a page that is a file without a server. Its Content-Security-Policy allows the browser to run
 * only the script of the page and to use only the style of the page. It allows no network request, because the icon is a
 * part of the page.
 */
function inlineHead({ script, style }: UiFiles): string {
  const sum = (content: string): string => `'sha256-${hash('sha256', content, 'base64')}'`;
  const policy = `default-src 'none'; script-src ${sum(script)}; style-src ${sum(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
  return `<meta http-equiv="Content-Security-Policy" content="${policy}">${ICON}<style>${style}</style>`;
}

/** Returns the state as JSON without `<`, so that nothing in it can end the script element around it. */
function jsonInHtml(state: DashboardState): string {
  return JSON.stringify(state).replaceAll('<', String.raw`\u003c`);
}
