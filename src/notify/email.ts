/**
 * Sends one message as an e-mail. nodemailer implements SMTP, because STARTTLS, AUTH and MIME are standards that others
 * have implemented with care. An error of nodemailer contains text of the server, which may contain a password. So only
 * the codes of an error are shown.
 */
import { createTransport } from 'nodemailer';
import type { Clock } from '../util/clock.ts';
import { ownMember } from '../util/own-member.ts';
import { printable } from '../util/printable.ts';
import { scalarText } from '../util/scalar-text.ts';
import type { EmailReceiver, Message, MessageSender, PartlyTaken } from './receivers.ts';
import { type SecretTools, secretNamed, Undeliverable } from './secret-values.ts';
import { linesOf, textsOf } from './texts.ts';

export interface EmailTools extends SecretTools {
  readonly clock: Clock;
  readonly sender?: MessageSender | undefined;
}

/** The ports for submission with TLS from the first byte (RFC 8314), and for submission (RFC 6409). */
const PORTS = { smtps: 465, smtp: 587 } as const;
/** The maximum number of characters of a subject. Mail programs cut off a longer subject in their lists of messages. */
const LONGEST_SUBJECT = 150;
/** The most bytes of one answer of the server. */
const MOST_BYTES = 64 * 1024;
/**
 * The time limit of each step, in milliseconds. The signal of the caller ends the steps earlier. This limit closes the sockets that
 * remain.
 */
const STEP_MS = 10_000;

/** Resolves like `Deliver`. Rejects if `abort` aborts first. */
export async function sendEmail(
  receiver: EmailReceiver,
  message: Message,
  tools: EmailTools,
  abort: AbortSignal,
): Promise<string | PartlyTaken | undefined> {
  const { authority, auth } = await accessOf(receiver, tools, abort);
  const { protocol, hostname, port } = new URL(receiver.server);
  const isSecure = protocol === 'smtps:';
  const transport = createTransport({
    // A URL has brackets around an IPv6 address, but a socket needs the address without brackets.
    host: hostname.replaceAll(/^\[|\]$/g, ''),
    port: port === '' ? PORTS[isSecure ? 'smtps' : 'smtp'] : Number(port),
    secure: isSecure,
    requireTLS: !isSecure && !receiver.isPlain,
    ignoreTLS: receiver.isPlain,
    // The option is set here, so that no environment variable of Node.js can switch off the verification.
    tls: { rejectUnauthorized: true, ...(authority === undefined ? {} : { ca: authority }) },
    // If the server does not offer AUTH, the delivery must fail. The message must not be sent without AUTH.
    ...(auth === undefined ? {} : { auth, forceAuth: true }),
    connectionTimeout: STEP_MS,
    greetingTimeout: STEP_MS,
    socketTimeout: STEP_MS,
    dnsTimeout: STEP_MS,
    socketCloseTimeout: 0,
    maxResponseSize: MOST_BYTES,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  try {
    const mail = emailOf(receiver, message, tools.clock.now(), tools.sender);
    const sent: unknown = await transport.sendMail({ ...mail, signal: abort });
    const { rejected } = sent as { readonly rejected: readonly unknown[] };
    if (rejected.length === 0) return undefined;
    return { partly: `it refused ${rejected.length} of ${receiver.to.length} recipients` };
  } catch (error) {
    abort.throwIfAborted();
    return problemOf(error as SmtpError);
  } finally {
    transport.close();
  }
}

/** Returns the parts of the e-mail. The same message has the same id in every process, so a mailbox shows it once. */
export function emailOf(
  { from, to }: EmailReceiver,
  message: Message,
  now: number,
  sender: MessageSender = {},
) {
  const { id, policy } = message;
  const notes = textsOf(message, sender);
  const texts = notes.map(({ title }) => title.toWellFormed());
  const paragraphs = notes.map((note) => linesOf(note).join('\n').toWellFormed());
  const more = texts.length === 1 ? '' : ` (and ${texts.length - 1} more)`;
  const subject = `Refit: ${texts[0] ?? ''}`;
  const most = LONGEST_SUBJECT - more.length;
  const shown = subject.length <= most ? subject : `${subject.slice(0, most - 1)}…`.toWellFormed();
  return {
    from: { name: 'Refit', address: from },
    to: to.map((address) => ({ name: '', address })),
    subject: `${shown}${more}`,
    text: `${paragraphs.join('\n\n')}\n\n-- \nRefit, UpgradePolicy ${printable(policy)}\n`,
    textEncoding: 'quoted-printable',
    messageId: `<${id}@${from.slice(from.lastIndexOf('@') + 1)}>`,
    date: new Date(now),
    // RFC 3834: programs do not send automatic replies, such as holiday notices, to such a message.
    headers: { 'Auto-Submitted': 'auto-generated' },
  } as const;
}

interface Access {
  /** Certificate authorities in PEM. */
  readonly authority?: string;
  readonly auth?: { readonly user: string; readonly pass: string };
}

async function accessOf(
  { secretName }: EmailReceiver,
  tools: EmailTools,
  abort: AbortSignal,
): Promise<Access> {
  if (secretName === undefined) return {};
  const { secret, read } = await secretNamed(secretName, tools, abort);
  // A space can be part of a password. The newline that many tools write at the end is not part of the password.
  const value = (key: string): string =>
    read(key)
      .toString('utf8')
      .replace(/\r?\n$/, '');
  const user = value('username');
  const pass = value('password');
  const authority = value('ca.crt');
  if ((user === '') !== (pass === ''))
    throw new Undeliverable(`${secret} must have both username and password, or neither`);
  if (user === '' && authority === '')
    throw new Undeliverable(`${secret} has neither username and password, nor ca.crt`);
  if (/[\0\r\n]/.test(`${user}${pass}`))
    throw new Undeliverable(`username or password of ${secret} has characters that cannot be sent`);
  return {
    ...(authority === '' ? {} : { authority }),
    ...(user === '' ? {} : { auth: { user, pass } }),
  };
}

/**
 * The parts of an error of nodemailer that contain no text of the server. From the server, only the status is included.
 */
interface SmtpError {
  /** The code that nodemailer gives the problem. */
  readonly code?: unknown;
  /** The code of the system or of the TLS library. */
  readonly originalCode?: unknown;
  /** The status of RFC 5321. */
  readonly responseCode?: unknown;
}

/** The clauses for the codes of nodemailer. Each clause describes the problem in a message. */
const PROBLEMS: Readonly<Record<string, string>> = {
  EAUTH: 'it did not accept username and password',
  EENVELOPE: 'it refused the sender or every recipient',
  EMESSAGE: 'it refused the message',
  ETLS: 'it does not speak TLS after STARTTLS',
  EPROTOCOL: 'it does not speak SMTP',
  EDNS: 'its name cannot be resolved',
  ETIMEDOUT: `it did not answer within ${STEP_MS / 1000} s`,
};

function problemOf({ code, originalCode, responseCode }: SmtpError): string {
  const clause = ownMember(PROBLEMS, scalarText(code)) ?? 'it cannot be reached';
  if (typeof responseCode === 'number') return `${clause} (${responseCode})`;
  const isCode = typeof originalCode === 'string' && /^[A-Z_0-9]+$/.test(originalCode);
  return isCode ? `${clause} (${originalCode})` : clause;
}
