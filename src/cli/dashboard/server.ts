/** Serves the dashboard on the loopback interface: the page, the present state, and each new state as an event. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from '../../util/listen.ts';
import type { UiFiles } from './bundle.ts';
import { pageOf } from './page.ts';
import type { DashboardState, Said } from './state.ts';

export interface DashboardServer {
  readonly port: number;
  /** Has the token, so it is only for the user who runs the command. */
  readonly url: string;
  /** Sends the state to every open page. */
  publish(state: DashboardState): void;
  close(): Promise<void>;
}

interface Parts {
  readonly port: number;
  readonly files: UiFiles;
  readonly explain: (plan: string, node: string) => readonly Said[];
}

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** Listens at 127.0.0.1. Rejects with REFIT_USAGE if the port is in use. */
export async function serveDashboard({ port, files, explain }: Parts): Promise<DashboardServer> {
  const token = randomBytes(24).toString('base64url');
  const pages = new Set<ServerResponse>();
  const behind = new Set<ServerResponse>();
  let last = '';
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? '/', 'http://localhost');
    if (url === null) return send(response, 400, 'text/plain', 'this is not an address\n');
    const refusal = refusalOf(request, own, token, url);
    if (refusal !== undefined) return send(response, refusal.code, 'text/plain', refusal.text);
    if (url.searchParams.has('token')) {
      const cookie = `${cookieName(own)}=${token}; HttpOnly; SameSite=Strict; Path=/`;
      response.writeHead(303, { ...HEADERS, location: '/', 'set-cookie': cookie }).end();
      return undefined;
    }
    if (url.pathname === '/api/events') return subscribe(response);
    const found = answerTo(url);
    return found === undefined
      ? send(response, 404, 'text/plain', 'not found\n')
      : send(response, 200, found.type, found.body);
  });
  const { port: own } = await listen(server, `127.0.0.1:${port}`);
  const answerTo = ({ pathname, searchParams }: URL) => {
    if (pathname === '/') return { type: 'text/html', body: pageOf({ kind: 'served' }) };
    if (pathname === '/ui.js') return { type: 'text/javascript', body: files.script };
    if (pathname === '/ui.css') return { type: 'text/css', body: files.style };
    if (pathname === '/api/state' && last !== '') return { type: 'application/json', body: last };
    if (pathname !== '/api/why') return undefined;
    const said = explain(searchParams.get('plan') ?? '', searchParams.get('node') ?? '');
    return { type: 'application/json', body: JSON.stringify(said) };
  };
  const subscribe = (response: ServerResponse): void => {
    response.writeHead(200, { ...HEADERS, 'content-type': 'text/event-stream' });
    pages.add(response);
    response.on('close', () => {
      pages.delete(response);
      behind.delete(response);
    });
    response.on('drain', () => void (behind.delete(response) && response.write(eventOf(last))));
    if (last !== '') response.write(eventOf(last));
  };
  return {
    port: own,
    url: `http://127.0.0.1:${own}/?token=${token}`,
    publish(state) {
      last = JSON.stringify(state);
      for (const page of pages) {
        // A page that does not read gets the newest state once it reads again, and none between.
        if (page.writableNeedDrain) behind.add(page);
        else page.write(eventOf(last));
      }
    },
    close: async () =>
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function eventOf(state: string): string {
  return `data: ${state}\n\n`;
}

/** Returns why a request gets no answer: other pages of the browser, and other users of this machine, can send requests too. */
function refusalOf(request: IncomingMessage, port: number, token: string, url: URL) {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  // A foreign name that resolves to this address must not reach the state (DNS rebinding).
  if (!hosts.includes(request.headers.host ?? ''))
    return { code: 421, text: `this server answers only as ${hosts.join(' or ')}\n` };
  if (request.method !== 'GET') return { code: 405, text: 'this server only answers GET\n' };
  const given = url.searchParams.get('token') ?? cookieIn(request, cookieName(port));
  if (given !== undefined && isSame(given, token)) return undefined;
  return { code: 403, text: 'open the URL that refit dashboard has printed; it has a token\n' };
}

/** Cookies do not tell ports apart, so the name does. */
function cookieName(port: number): string {
  return `refit-${port}`;
}

function cookieIn({ headers: { cookie = '' } }: IncomingMessage, name: string) {
  const pairs = cookie.split('; ').map((pair) => pair.split('='));
  return pairs.find(([key]) => key === name)?.[1];
}

function isSame(given: string, token: string): boolean {
  const bytes = Buffer.from(given);
  return bytes.length === token.length && timingSafeEqual(bytes, Buffer.from(token));
}

function send(response: ServerResponse, code: number, type: string, body: string): void {
  response.writeHead(code, { ...HEADERS, 'content-type': `${type}; charset=utf-8` }).end(body);
}
