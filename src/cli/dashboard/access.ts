/** Decides which requests the dashboard answers: other pages of the browser, and other users of this machine, can send requests too. */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

const ACTION_PATH = 'api/act';
export const PREVIEW_PATH = 'api/preview';
/**
 * The header that the page sends with each request for an action. A page of another site may send this header only with
 * the permission of this server, and the server never gives that permission.
 */
const ACTION_HEADER = 'x-refit-action';

interface Rules {
  readonly port: number;
  /** The path prefix of everything that the server serves. */
  readonly place: string;
  readonly token: string;
  readonly allowsActions: boolean;
}

interface Refusal {
  readonly code: number;
  readonly text: string;
}

/** Returns the code and text with which a request is refused; undefined if it is allowed. */
export function refusalOf(
  request: Pick<IncomingMessage, 'method' | 'headers'>,
  url: URL,
  { port, place, token, allowsActions }: Rules,
): Refusal | undefined {
  // Browsers leave the port out of the header Host if it is 80.
  const end = port === 80 ? '' : `:${port}`;
  const hosts = [`127.0.0.1${end}`, `localhost${end}`];
  // A page at another host name that resolves to this address must not read the state (DNS rebinding).
  if (!hosts.includes(request.headers.host ?? ''))
    return {
      code: 421,
      text: `open this page as ${hosts.join(' or ')}: other names of this host are refused\n`,
    };
  const isPost = request.method === 'POST';
  const isAction = isPost && url.pathname === `${place}${ACTION_PATH}`;
  // A preview changes nothing, but it reads the cluster with the rights of the user, so only the page may ask for one.
  const isOfPage = isAction || (isPost && url.pathname === `${place}${PREVIEW_PATH}`);
  if (isAction && !allowsActions)
    return {
      code: 405,
      text: 'this server only answers GET; to control plans, start refit dashboard with --allow-actions\n',
    };
  if (!isOfPage && request.method !== 'GET')
    return { code: 405, text: 'this server only answers GET\n' };
  const cookie = cookieIn(request, cookieName(port));
  // An action or a preview needs the cookie. The token in the URL is not enough, because the history of a browser may contain it.
  const given = isOfPage ? cookie : (url.searchParams.get('token') ?? cookie);
  const isBelow = url.pathname.startsWith(place);
  if (!isBelow || given === undefined || !isSame(given, token))
    return { code: 403, text: 'open the URL that refit dashboard has printed; it has a token\n' };
  return isOfPage ? refusalOfAction(request) : undefined;
}

/**
 * Returns the code and text with which an action or a preview is refused; undefined if the page of this server has sent it. The cookie
 * alone does not prove that: the browser also sends it with requests of pages that come from another port of this machine.
 */
function refusalOfAction({ headers }: Pick<IncomingMessage, 'headers'>): Refusal | undefined {
  const { host = '', origin } = headers;
  const isOwn =
    headers[ACTION_HEADER] === '1' && (origin === undefined || origin === `http://${host}`);
  return isOwn
    ? undefined
    : { code: 403, text: 'only the page of this server can control plans\n' };
}

/**
 * Returns the name of the cookie. Browsers share cookies among all ports of a host, so the name contains the port. A
 * browser could also send the cookie to servers of other users at other ports of this machine. To prevent that, the
 * cookie has a path that these users do not know.
 */
export function cookieName(port: number): string {
  return `refit-${port}`;
}

function cookieIn({ headers: { cookie = '' } }: Pick<IncomingMessage, 'headers'>, name: string) {
  const pairs = cookie.split('; ').map((pair) => pair.split('='));
  return pairs.find(([key]) => key === name)?.[1];
}

function isSame(given: string, token: string): boolean {
  const bytes = Buffer.from(given);
  return bytes.length === token.length && timingSafeEqual(bytes, Buffer.from(token));
}
