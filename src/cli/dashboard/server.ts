/** Serves the dashboard on the loopback interface: the page, the present state, and each new state as an event. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { listen } from '../../util/listen.ts';
import { cookieName, PREVIEW_PATH, refusalOf } from './access.ts';
import {
  type Act,
  answerAction,
  answerEvents,
  answerPreview,
  EVENTS_PATH,
  HEADERS,
  type Preview,
  send,
} from './answers.ts';
import type { UiFiles } from './bundle.ts';
import { createFeed } from './feed.ts';
import type { AskEvents } from './node-events.ts';
import { pageOf } from './page.ts';
import type { DashboardState, RunShown, Said } from './state.ts';

export interface DashboardServer {
  readonly port: number;
  /** The URL contains the token, so only the user who runs the command may see it. */
  readonly url: string;
  /** Sends the state to every open page. */
  publish(state: DashboardState): void;
  close(): Promise<void>;
}

interface Parts {
  readonly port: number;
  readonly files: UiFiles;
  readonly explain: (plan: string, node: string) => readonly Said[];
  /** Returns an earlier run of the plan; undefined if there is no such run. */
  readonly explainRun: (plan: string, run: string) => RunShown | undefined;
  readonly eventsOf: AskEvents;
  readonly preview: Preview;
  /** Carries out the action of a button. Without it, the server carries out nothing. */
  readonly act?: Act | undefined;
}

/** Listens at 127.0.0.1. Rejects with REFIT_USAGE if the port is in use. */
export async function serveDashboard({
  port,
  files,
  explain,
  explainRun,
  eventsOf,
  preview,
  act,
}: Parts): Promise<DashboardServer> {
  const token = randomBytes(24).toString('base64url');
  const place = `/${randomBytes(12).toString('base64url')}/`;
  const feed = createFeed();
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? '/', 'http://localhost');
    if (url === null) return send(response, 400, 'text/plain', 'this is not an address\n');
    const refusal = refusalOf(request, url, rules);
    if (refusal !== undefined) return send(response, refusal.code, 'text/plain', refusal.text);
    if (url.searchParams.has('token')) {
      const cookie = `${cookieName(own)}=${token}; HttpOnly; SameSite=Strict; Path=${place}`;
      response.writeHead(303, { ...HEADERS, location: place, 'set-cookie': cookie }).end();
      return undefined;
    }
    const path = url.pathname.slice(place.length);
    if (request.method === 'POST' && path === PREVIEW_PATH)
      return void answerPreview(preview, request, response);
    if (act !== undefined && request.method === 'POST')
      return void answerAction(act, request, response);
    if (path === 'api/events') return feed.subscribe(response);
    if (path === EVENTS_PATH) return void answerEvents(eventsOf, url.searchParams, response);
    const found = answerTo(path, url.searchParams);
    return found === undefined
      ? send(response, 404, 'text/plain', 'not found\n')
      : send(response, 200, found.type, found.body);
  });
  const { port: own } = await listen(server, `127.0.0.1:${port}`);
  const rules = { port: own, place, token, allowsActions: act !== undefined };
  const answerTo = (path: string, searchParams: URLSearchParams) => {
    if (path === '') return { type: 'text/html', body: pageOf({ kind: 'served' }) };
    if (path === 'ui.js') return { type: 'text/javascript', body: files.script };
    if (path === 'ui.css') return { type: 'text/css', body: files.style };
    if (path === 'api/state' && feed.last !== '')
      return { type: 'application/json', body: feed.last };
    const plan = searchParams.get('plan') ?? '';
    const isRun = path === 'api/run';
    if (!isRun && path !== 'api/why') return undefined;
    const said = isRun
      ? (explainRun(plan, searchParams.get('run') ?? '') ?? null)
      : explain(plan, searchParams.get('node') ?? '');
    return { type: 'application/json', body: JSON.stringify(said) };
  };
  return {
    port: own,
    url: `http://127.0.0.1:${own}${place}?token=${token}`,
    publish: (state) => feed.publish(state),
    close: async () =>
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
