/** Starts the page. The state comes from the report that contains the page, or from the server that served the page. */
import { render } from 'preact';
import type { DashboardState } from '../src/cli/dashboard/state.ts';
import { App } from './app.tsx';
import './style.css';

const root = document.getElementById('refit');
const inside = document.getElementById('refit-state')?.textContent;
if (root !== null) {
  const state = inside === undefined ? undefined : (JSON.parse(inside) as DashboardState);
  const isProxied = root.dataset['proxied'] !== undefined;
  render(<App inside={state} isProxied={isProxied} />, root);
}
