/**
 * Delivers one message to one receiver: over HTTP, or as e-mail. The text about a failure contains no address, nothing
 * else that may be secret, and no text from the receiver.
 */
import { codeOf, getOnce, statusOf } from '../http/http-get.ts';
import type { Environment } from '../http/proxy-choice.ts';
import { keyProblem, signatureOf } from '../http/signature.ts';
import type { Clock } from '../util/clock.ts';
import { isSuccess } from '../util/http-status.ts';
import { written } from './formats.ts';
import type { HttpReceiver, Message, MessageSender, PartlyTaken, Receiver } from './receivers.ts';
import { type SecretTools, secretAt, textOf, Undeliverable } from './secret-values.ts';

export interface DeliveryTools extends SecretTools {
  /** The environment variables that name the proxies. */
  readonly environment: Environment;
  readonly clock: Clock;
  readonly sender?: MessageSender | undefined;
}

/**
 * Sends the message. Resolves with the problem, as a clause without a secret; undefined if the receiver accepted the
 * message.
 */
export type Deliver = (
  receiver: Receiver,
  message: Message,
  abort: AbortSignal,
) => Promise<string | PartlyTaken | undefined>;

/** Milliseconds that a delivery may take. */
const WITHIN_MS = 10_000;
/** The characters that the value of a header may have. */
const IN_HEADER = /^[\x21-\x7e]+$/;

export function deliverer(tools: DeliveryTools): Deliver {
  return async (receiver, message, abort) => {
    const late = AbortSignal.timeout(WITHIN_MS);
    const limit = AbortSignal.any([abort, late]);
    try {
      if (receiver.type !== 'Email') return await deliver(receiver, message, tools, limit);
      // The library is loaded only for an e-mail, because it is large, and most controllers send no e-mail.
      const { sendEmail } = await import('./email.ts');
      return await sendEmail(receiver, message, tools, limit);
    } catch (error) {
      if (error instanceof Undeliverable) return error.message;
      if (late.aborted) return `it did not answer within ${WITHIN_MS / 1000} s`;
      return `it cannot be reached${codeOf(error)}`;
    }
  };
}

async function deliver(
  receiver: HttpReceiver,
  message: Message,
  tools: DeliveryTools,
  abort: AbortSignal,
): Promise<string | undefined> {
  const { method, path, headers, body: content } = written(receiver, message, tools.sender);
  const body = JSON.stringify(content);
  const { url, authorization } = await addressOf(receiver, tools, abort);
  const address = new URL(url);
  if (path !== '') address.pathname = `${address.pathname.replace(/\/$/, '')}${path}`;
  const signature = await signatureFor(receiver, body, tools, abort);
  const response = await getOnce(
    address,
    {
      method,
      body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'refit',
        ...headers,
        ...authorization,
        ...signature,
      },
      environment: tools.environment,
    },
    abort,
  );
  response.destroy();
  const { statusCode = 0 } = response;
  if (isSuccess(statusCode)) return undefined;
  return `it answered ${statusOf(response)}`;
}

interface Address {
  readonly url: string;
  readonly authorization: Readonly<Record<string, string>>;
}

/** Reads the Secret in each attempt, so that a corrected Secret takes effect at once. */
async function addressOf(
  receiver: HttpReceiver,
  tools: DeliveryTools,
  abort: AbortSignal,
): Promise<Address> {
  if (receiver.type === 'Matrix') {
    const { value, title } = await secretAt(receiver.token, tools, abort);
    const token = textOf(value);
    if (!IN_HEADER.test(token))
      throw new Undeliverable(`${title} has characters that cannot be sent`);
    return { url: receiver.server, authorization: { authorization: `Bearer ${token}` } };
  }
  const { address } = receiver;
  if ('url' in address) return { url: address.url, authorization: {} };
  const { value, title } = await secretAt(address.secret, tools, abort);
  const url = textOf(value);
  if (!/^https?:\/\/[^\s@]+$/.test(url) || !URL.canParse(url))
    throw new Undeliverable(
      `${title} must be a URL that begins with http:// or https:// and contains no credentials`,
    );
  return { url, authorization: {} };
}

/** Returns the headers with the signature; an empty object if the receiver has no signing key. */
async function signatureFor(
  receiver: HttpReceiver,
  body: string,
  tools: DeliveryTools,
  abort: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  if (receiver.type === 'Matrix' || receiver.signingKey === undefined) return {};
  const { value, title } = await secretAt(receiver.signingKey, tools, abort);
  const problem = keyProblem(value);
  if (problem !== undefined) throw new Undeliverable(`${title} ${problem}`);
  return signatureOf(body, value, tools.clock.now()).headers;
}
