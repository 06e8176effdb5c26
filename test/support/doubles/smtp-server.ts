/**
 * A mail server on loopback that follows RFC 5321, RFC 3207 (STARTTLS) and RFC 4954 (AUTH PLAIN), as far as a client
 * can observe it. A test can set its answers to single commands. Other tests check with Exim how a real server handles
 * the messages.
 */

import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';

export interface SmtpTraits {
  /** The certificate and the key. If absent, the server does not support TLS. */
  readonly identity?: { readonly cert: string; readonly key: string };
  /** True if the server uses TLS from the first byte. */
  readonly isImplicit?: boolean;
  /** True if the server does not offer STARTTLS, and refuses it. */
  readonly hidesTls?: boolean;
  /** True if the server offers AUTH PLAIN. */
  readonly hasAuth?: boolean;
  /** Returns another answer to a command, without the line break; 'nothing' if the server must not answer. */
  readonly answer?: (command: string) => string | undefined;
}

export interface SmtpMail {
  readonly text: string;
  readonly isEncrypted: boolean;
}

export interface SmtpServer extends AsyncDisposable {
  readonly port: number;
  /** Every command, without the credentials of AUTH. */
  readonly commands: readonly string[];
  readonly mails: readonly SmtpMail[];
  /** The user and the password of each AUTH PLAIN, and whether TLS encrypted them. */
  readonly logins: readonly { readonly pair: string; readonly isEncrypted: boolean }[];
  open(): number;
}

export async function startSmtpServer(traits: SmtpTraits): Promise<SmtpServer> {
  const commands: string[] = [];
  const mails: SmtpMail[] = [];
  const logins: { pair: string; isEncrypted: boolean }[] = [];
  const sockets = new Set<Socket>();
  const server =
    traits.isImplicit === true && traits.identity !== undefined
      ? createTlsServer(traits.identity)
      : createServer();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
  });
  const greet = (socket: Socket): void => {
    const greeting = traits.answer?.('') ?? '220 mail.test ESMTP';
    if (greeting !== 'nothing') socket.write(`${greeting}\r\n`);
    converse(socket, traits, { commands, mails, logins });
  };
  server.on(traits.isImplicit === true ? 'secureConnection' : 'connection', greet);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    commands,
    mails,
    logins,
    open: () => sockets.size,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

interface Seen {
  readonly commands: string[];
  readonly mails: SmtpMail[];
  readonly logins: { pair: string; isEncrypted: boolean }[];
}

const END_OF_DATA = '\r\n.\r\n';

/** Answers the commands of one client until the client upgrades the connection or ends it. */
function converse(socket: Socket, traits: SmtpTraits, seen: Seen): void {
  const isEncrypted = socket instanceof TLSSocket;
  let rest = '';
  let isData = false;
  const say = (line: string): void => {
    if (line !== 'nothing') socket.write(`${line}\r\n`);
  };
  const onLine = (line: string): void => {
    const verb = line.split(' ', 1)[0]?.toUpperCase() ?? '';
    seen.commands.push(verb === 'AUTH' ? 'AUTH' : line);
    if (verb === 'AUTH') {
      const pair = Buffer.from(line.split(' ')[2] ?? '', 'base64').toString();
      seen.logins.push({ pair: pair.replaceAll('\0', ' ').trim(), isEncrypted });
    }
    const answer = traits.answer?.(line) ?? usualAnswer(verb, traits, isEncrypted);
    say(answer);
    isData = verb === 'DATA' && answer.startsWith('354');
    if (verb === 'QUIT') socket.end();
    if (verb === 'STARTTLS' && answer.startsWith('220')) upgrade(socket, traits, seen);
  };
  socket.on('data', (chunk: Buffer) => {
    rest += chunk.toString();
    for (;;) {
      const mark = isData ? END_OF_DATA : '\r\n';
      const end = rest.indexOf(mark);
      if (end === -1) return;
      const part = rest.slice(0, end);
      rest = rest.slice(end + mark.length);
      if (!isData) {
        onLine(part);
        continue;
      }
      isData = false;
      // RFC 5321, 4.5.2: a full stop at the beginning of a line was doubled.
      seen.mails.push({ text: part.replaceAll(/^\.\./gm, '.'), isEncrypted });
      say(traits.answer?.('.') ?? '250 2.0.0 queued');
    }
  });
}

function usualAnswer(verb: string, traits: SmtpTraits, isEncrypted: boolean): string {
  const offersTls = traits.identity !== undefined && traits.hidesTls !== true && !isEncrypted;
  const offers = [
    ...(offersTls ? ['STARTTLS'] : []),
    ...(traits.hasAuth === true ? ['AUTH PLAIN'] : []),
    'SIZE 1000000',
  ];
  const answers: Readonly<Record<string, string>> = {
    EHLO: ['mail.test', ...offers]
      .map((line, index) => `250${index === offers.length ? ' ' : '-'}${line}`)
      .join('\r\n'),
    STARTTLS: offersTls ? '220 2.0.0 ready' : '502 5.5.1 not implemented',
    AUTH: traits.hasAuth === true ? '235 2.7.0 accepted' : '502 5.5.1 not implemented',
    MAIL: '250 2.1.0 ok',
    RCPT: '250 2.1.5 ok',
    DATA: '354 go on',
    QUIT: '221 2.0.0 bye',
  };
  return answers[verb] ?? '502 5.5.2 unknown';
}

function upgrade(socket: Socket, traits: SmtpTraits, seen: Seen): void {
  socket.removeAllListeners('data');
  const secured = new TLSSocket(socket, { isServer: true, ...traits.identity });
  secured.on('error', () => socket.destroy());
  converse(secured, traits, seen);
}
