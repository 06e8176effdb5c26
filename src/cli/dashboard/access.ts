/** Decides which requests the dashboard answers: other pages of the browser, and other users of this machine, can send requests too. */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

export const ACTION_PATH = 'api/act';
/** A page of another site cannot send this header unless the server allows it, and this server allows nobody. */
const ACTION_HEADER = 'x-refit-action';

interface Rules {
  readonly port: number;
  /** The path below which everything is. */
  readonly place: string;
  readonly token: string;
  readonly allowsActions: boolean;
}

interface Refusal {
  readonly code: number;
  readonly text: string;
}

/** Returns why a request gets no answer; undefined if it gets one. */
export function refusalOf(
  request: IncomingMessage,
  url: URL,
  { port, place, token, allowsActions }: Rules,
): Refusal | undefined {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  // A foreign name that resolves to this address must not reach the state (DNS rebinding).
  if (!hosts.includes(request.headers.host ?? ''))
    return {
      code: 421,
      text: `open this page as ${hosts.join(' or ')}: other names of this host are refused\n`,
    };
  const isAction = request.method === 'POST' && url.pathname === `${place}${ACTION_PATH}`;
  if (isAction && !allowsActions)
    return {
      code: 405,
      text: 'this server only answers GET; to control plans, start refit dashboard with --allow-actions\n',
    };
  if (!isAction && request.method !== 'GET')
    return { code: 405, text: 'this server only answers GET\n' };
  const cookie = cookieIn(request, cookieName(port));
  // An action needs the cookie: the token of an address may stand in the history of a browser.
  const given = isAction ? cookie : (url.searchParams.get('token') ?? cookie);
  const isBelow = url.pathname.startsWith(place);
  if (!isBelow || given === undefined || !isSame(given, token))
    return { code: 403, text: 'open the URL that refit dashboard has printed; it has a token\n' };
  return isAction ? refusalOfAction(request) : undefined;
}

/** The cookie is not enough: for a browser, a server at another port of this machine is the same site, and its pages send it. */
function refusalOfAction({ headers }: IncomingMessage): Refusal | undefined {
  const { host = '', origin } = headers;
  const isOwn =
    headers[ACTION_HEADER] === '1' && (origin === undefined || origin === `http://${host}`);
  return isOwn
    ? undefined
    : { code: 403, text: 'only the page of this server can control plans\n' };
}

/**
 * Cookies do not tell ports apart, so the name does. A browser would also send the cookie to the servers of other users at
 * other ports of this machine, so its path is one that they do not know.
 */
export function cookieName(port: number): string {
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
