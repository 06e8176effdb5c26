/** Answers the requests of viewers. */
import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../util/clock.ts';
import { semaphore } from '../../util/waits.ts';
import {
  type Act,
  answerAction,
  answerEvents,
  answerPreview,
  bodyOf,
  EVENTS_PATH,
  HEADERS,
  type Preview,
  send,
} from '../dashboard/answers.ts';
import type { UiFiles } from '../dashboard/bundle.ts';
import type { AskEvents } from '../dashboard/node-events.ts';
import { pageOf } from '../dashboard/page.ts';
import { createFailures, type Sender } from './failures.ts';
import { isOfOwnPage, isOwnName, isToken, LONGEST_TOKEN, tokenIn } from './gate.ts';
import { createPreviewTurns, type PreviewTurns } from './preview-turns.ts';
import { SIGN_IN_HEADERS, signInPage } from './sign-in-page.ts';
import type { Arrival, ArrivalOf } from './trusted-proxy.ts';
import type { FoundViewer, Viewer, Viewers } from './viewers.ts';

interface RouteParts {
  readonly viewers: Pick<Viewers, 'find' | 'knows' | 'forget'>;
  readonly files: UiFiles;
  readonly clock: Clock;
  readonly isKnown: (name: string) => boolean;
  readonly arrivalOf: ArrivalOf;
  /** True if clients use TLS, so that the cookie may be limited to TLS. */
  readonly isSecure: boolean;
}

const ACTION_HEADER = 'x-refit-action';
/** The maximum size of the form with the token, in bytes. A character of the token may need three bytes in the form. */
const LONGEST_FORM = 3 * LONGEST_TOKEN + 64;
const MOST_PAGES = 8;
const ACTIONS_AT_ONCE = 4;
type Answer = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Limits how much is done at once for all viewers, because the process also carries out plans. */
interface Turns {
  readonly acting: ReturnType<typeof semaphore>;
  /** The lists of Events that are read. */
  readonly listing: ReturnType<typeof semaphore>;
  readonly previewing: PreviewTurns;
}

function createTurns(clock: Clock): Turns {
  return {
    acting: semaphore(ACTIONS_AT_ONCE),
    listing: semaphore(ACTIONS_AT_ONCE),
    previewing: createPreviewTurns(clock),
  };
}

export function createRoutes(parts: RouteParts): Answer {
  const { viewers, files, clock, isKnown, arrivalOf, isSecure } = parts;
  const failures = createFailures(clock);
  const turns = createTurns(clock);
  // The prefix `__Host-` makes browsers accept the cookie only over TLS, and only from this host itself.
  const cookieName = isSecure ? '__Host-refit-token' : 'refit-token';
  const cookieOf = (token: string, more = ''): string =>
    `${cookieName}=${token}; HttpOnly; SameSite=Strict; Path=/${isSecure ? '; Secure' : ''}${more}`;
  /**
   * Resolves with the owner of the token. Each refused token counts as a failure of the sender. Behind an Ingress, all
   * viewers have the same address. So a viewer whose token was confirmed before is not limited by the failures of other
   * viewers.
   */
  const ownerOf = async (token: string, from: Sender): Promise<FoundViewer> => {
    const seconds = viewers.knows(token) ? 0 : failures.waitOf(from);
    if (seconds > 0)
      return { kind: 'unanswered', why: `Too many tokens were refused: wait ${seconds} s.` };
    const found = await viewers.find(token);
    if (found.kind === 'refused') failures.note(from);
    return found;
  };
  const signIn: Answer = async (request, response) => {
    // If the connection breaks, the body cannot be read, and no answer would arrive.
    const body = await bodyOf(request, LONGEST_FORM).catch(() => '');
    const token = (new URLSearchParams(body ?? '').get('token') ?? '').trim();
    if (body === undefined || token.length > LONGEST_TOKEN)
      return askToSignIn(
        request,
        response,
        `The token is longer than the ${LONGEST_TOKEN} characters that a cookie can keep. A proxy can send it in the Authorization header.`,
      );
    if (!isToken(token))
      return askToSignIn(
        request,
        response,
        'This is not a token: it is empty, or it has characters that a bearer token cannot have.',
      );
    const found = await ownerOf(token, { address: request.socket.remoteAddress ?? '' });
    if (found.kind !== 'known') return askToSignIn(request, response, found.why);
    const headers = { ...HEADERS, location: './', 'set-cookie': cookieOf(token) };
    response.writeHead(303, headers).end();
  };
  const signOut: Answer = async (request, response) => {
    const token = tokenIn(request.headers, cookieName);
    if (token !== undefined) viewers.forget(token);
    const headers = { ...HEADERS, location: './', 'set-cookie': cookieOf('', '; Max-Age=0') };
    await Promise.resolve(response.writeHead(303, headers).end());
  };
  return async (request, response) => {
    const url = URL.parse(request.url ?? '/', 'http://localhost');
    if (url === null) return send(response, 400, 'text/plain', 'this is not an address\n');
    const refusal = refusalOf(request, url, isKnown);
    if (refusal !== undefined) return send(response, refusal.code, 'text/plain', refusal.text);
    const { pathname } = url;
    const key = `${request.method} ${pathname}`;
    // Style and script are sent without a token: they contain no secret, and the page that asks for a token needs the style.
    if (key === 'GET /ui.css') return send(response, 200, 'text/css', files.style);
    if (key === 'GET /ui.js') return send(response, 200, 'text/javascript', files.script);
    const arrival = arrivalOf(request);
    if (arrival.kind === 'refused')
      return send(response, arrival.code, 'text/plain', `${arrival.why}\n`);
    const isProxied = arrival.kind === 'proxied';
    if (key === 'POST /sign-in' && !isProxied) return await signIn(request, response);
    if (key === 'POST /sign-out' && !isProxied) return await signOut(request, response);
    if (!FOR_VIEWERS.has(key)) return send(response, 404, 'text/plain', 'not found\n');
    const token = isProxied ? arrival.token : tokenIn(request.headers, cookieName);
    const found =
      token === undefined ? undefined : await ownerOf(token, senderOf(request, arrival));
    if (found?.kind === 'known')
      return await answerViewer({ viewer: found.viewer, url, isProxied, turns }, request, response);
    if (pathname === '/' && !isProxied) return askToSignIn(request, response, found?.why);
    const code = found?.kind === 'unanswered' ? 503 : 401;
    return send(response, code, 'text/plain', `${found?.why ?? 'Sign in first.'}\n`);
  };
}

/** Answers with the page that asks for a token. The page shows `why` if it is set. */
function askToSignIn(request: IncomingMessage, response: ServerResponse, why?: string): void {
  const isFromElsewhere = request.headers['sec-fetch-site'] === 'cross-site';
  send(response, 401, 'text/html', signInPage(why, isFromElsewhere), SIGN_IN_HEADERS);
}

/** Returns the sender whose refused tokens are counted. */
function senderOf({ socket }: IncomingMessage, arrival: Arrival): Sender {
  const proxied = arrival.kind === 'proxied' ? hash('sha256', arrival.token) : undefined;
  return { address: socket.remoteAddress ?? '', proxied };
}

interface Asked {
  readonly viewer: Viewer;
  readonly url: URL;
  /** True if a proxy signs the viewer in, and out. */
  readonly isProxied: boolean;
  readonly turns: Turns;
}

async function answerViewer(
  { viewer, url, isProxied, turns: { acting, listing, previewing } }: Asked,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = url;
  if (pathname === '/api/act') {
    const act: Act = async (action) => await acting(async () => await viewer.act(action));
    return await answerAction(act, request, response);
  }
  if (pathname === '/api/preview') {
    const preview: Preview = async (text) =>
      await previewing(viewer.user, async () => await viewer.preview(text));
    return await answerPreview(preview, request, response);
  }
  if (pathname === '/')
    return send(response, 200, 'text/html', pageOf({ kind: 'served', isProxied }));
  if (pathname === '/api/run') {
    const run = viewer.explainRun(searchParams.get('plan') ?? '', searchParams.get('run') ?? '');
    return send(response, 200, 'application/json', JSON.stringify(run ?? null));
  }
  if (pathname === `/${EVENTS_PATH}`) {
    const ask: AskEvents = async (plan, node) =>
      await listing(async () => await viewer.eventsOf(plan, node));
    return await answerEvents(ask, searchParams, response);
  }
  if (pathname === '/api/why') {
    const said = viewer.explain(searchParams.get('plan') ?? '', searchParams.get('node') ?? '');
    return send(response, 200, 'application/json', JSON.stringify(said));
  }
  const { feed } = viewer;
  if (!viewer.follow() || feed.pages >= MOST_PAGES)
    return send(response, 503, 'text/plain', TOO_MANY);
  if (pathname === '/api/events') return feed.subscribe(response);
  if (feed.last === '')
    return send(
      response,
      503,
      'text/plain',
      'the plans have not been read yet: try again in a few seconds\n',
    );
  return send(response, 200, 'application/json', feed.last);
}

const TOO_MANY = 'too many pages are open: close one, or try again later\n';

const FOR_VIEWERS = new Set([
  'GET /',
  'GET /api/state',
  'GET /api/events',
  `GET /${EVENTS_PATH}`,
  'GET /api/why',
  'GET /api/run',
  'POST /api/act',
  'POST /api/preview',
]);

/**
 * Returns the code and the text with which a request is refused for every sender; undefined if the request is allowed.
 * `url` is the parsed URL of the request, because the same path can be written in several ways.
 */
function refusalOf(
  { method, headers }: IncomingMessage,
  { pathname }: URL,
  isKnown: (name: string) => boolean,
) {
  // A page at another host name that resolves to this address must not read the state (DNS rebinding).
  if (!isOwnName(headers, isKnown))
    return {
      code: 421,
      text: 'this server does not have that name: use a name of its certificate, or add the name with --ui-host\n',
    };
  if (method === 'GET') return undefined;
  if (method !== 'POST') return { code: 405, text: 'this server only answers GET and POST\n' };
  const isAction = pathname.startsWith('/api/');
  // A proxy may add credentials to the requests of any page, so the request must also prove that a page of this server has sent it.
  if (isOfOwnPage(headers) && (!isAction || headers[ACTION_HEADER] === '1')) return undefined;
  return { code: 403, text: 'only the page of this server can control plans\n' };
}
