/**
 * Delivers one message to one receiver. What it says about a failure has neither the address nor anything else that may be secret, and
 * nothing that the receiver says.
 */
import { getOnce } from '../http/http-get.ts';
import type { Environment } from '../http/proxy-choice.ts';
import type { KubeClient } from '../kube/client.ts';
import { secrets } from '../kube/resources.ts';
import { isForbidden, isNotFound } from '../kube/status-error.ts';
import { http } from '../util/http.ts';
import { ownMember } from '../util/own-member.ts';
import { written } from './formats.ts';
import type { Message, Receiver } from './receivers.ts';

export interface DeliveryTools {
  readonly client: KubeClient;
  /** The namespace of the Secrets. */
  readonly namespace: string;
  /** The environment variables that name the proxies. */
  readonly environment: Environment;
}

/** Sends the message. Resolves with the problem, as a clause without a secret; undefined if the receiver took the message. */
export type Deliver = (
  receiver: Receiver,
  message: Message,
  abort: AbortSignal,
) => Promise<string | undefined>;

/** Milliseconds that a delivery may take. */
const WITHIN_MS = 10_000;
const LONGEST_SECRET = 4096;
/** The characters that the value of a header may have. */
const IN_HEADER = /^[\x21-\x7e]+$/;

/** The message of this error has no secret, and may be shown. */
class Undeliverable extends Error {
  override readonly name = 'Undeliverable';
}

export function deliverer(tools: DeliveryTools): Deliver {
  return async (receiver, message, abort) => {
    const late = AbortSignal.timeout(WITHIN_MS);
    try {
      return await deliver(receiver, message, tools, AbortSignal.any([abort, late]));
    } catch (error) {
      if (error instanceof Undeliverable) return error.message;
      if (late.aborted) return `it did not answer within ${WITHIN_MS / 1000} s`;
      return `it cannot be reached${codeOf(error)}`;
    }
  };
}

async function deliver(
  receiver: Receiver,
  message: Message,
  tools: DeliveryTools,
  abort: AbortSignal,
): Promise<string | undefined> {
  const { method, path, headers, body } = written(receiver, message);
  const { url, authorization } = await addressOf(receiver, tools, abort);
  const address = new URL(url);
  if (path !== '') address.pathname = `${address.pathname.replace(/\/$/, '')}${path}`;
  const response = await getOnce(
    address,
    {
      method,
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        'user-agent': 'refit',
        ...headers,
        ...authorization,
      },
      environment: tools.environment,
    },
    abort,
  );
  response.destroy();
  const { statusCode = 0 } = response;
  if (statusCode >= 200 && statusCode <= 299) return undefined;
  return `it answered ${statusCode} ${http.STATUS_CODES[statusCode] ?? ''}`.trim();
}

interface Address {
  readonly url: string;
  readonly authorization: Readonly<Record<string, string>>;
}

/** Reads the Secret in each attempt, so that a corrected one counts at once. */
async function addressOf(
  receiver: Receiver,
  tools: DeliveryTools,
  abort: AbortSignal,
): Promise<Address> {
  if (receiver.type === 'Matrix') {
    const { text: token, title } = await secretAt(receiver.token, tools, abort);
    if (!IN_HEADER.test(token))
      throw new Undeliverable(`${title} has characters that cannot be sent`);
    return { url: receiver.server, authorization: { authorization: `Bearer ${token}` } };
  }
  const { address } = receiver;
  if ('url' in address) return { url: address.url, authorization: {} };
  const { text: url, title } = await secretAt(address.secret, tools, abort);
  if (!/^https?:\/\/[^\s@]+$/.test(url) || !URL.canParse(url))
    throw new Undeliverable(
      `${title} must be a URL that begins with http:// or https:// and contains no credentials`,
    );
  return { url, authorization: {} };
}

async function secretAt(
  { name, key }: Readonly<Record<'name' | 'key', string>>,
  { client, namespace }: DeliveryTools,
  abort: AbortSignal,
): Promise<{ readonly text: string; readonly title: string }> {
  const secret = `Secret ${namespace}/${name}`;
  const { data = {} } = await client
    .get(secrets, name, { namespace, abort })
    .catch((error: unknown) => {
      if (isNotFound(error)) throw new Undeliverable(`${secret} does not exist`);
      if (isForbidden(error)) throw new Undeliverable(`the leader has no right to get ${secret}`);
      throw new Undeliverable(`${secret} cannot be read`);
    });
  const text = Buffer.from(ownMember(data, key) ?? '', 'base64')
    .toString('utf8')
    .trim();
  if (text === '') throw new Undeliverable(`${secret} has no key ${key}, or it is empty`);
  if (text.length > LONGEST_SECRET)
    throw new Undeliverable(`the key ${key} of ${secret} is longer than ${LONGEST_SECRET}`);
  return { text, title: `the key ${key} of ${secret}` };
}

/** The code of a network error says what is wrong, and no address. */
function codeOf(error: unknown): string {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } };
  const code = cause?.code;
  return typeof code === 'string' && /^[A-Z_0-9]+$/.test(code) ? ` (${code})` : '';
}
