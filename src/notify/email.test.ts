/**
 * Tests that e-mail needs TLS, that no text can change the headers or the recipients, and that no reported problem
 * contains a secret.
 */
import { expect, test, vi } from 'vitest';
import { MemoryApi } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { type SmtpTraits, startSmtpServer } from '../../test/support/doubles/smtp-server.ts';
import { createAuthority, issueServer, validFrom } from '../../tools/controlplane/certs.ts';
import { secrets } from '../kube/resources.ts';
import { systemClock } from '../util/clock.ts';
import { deliverer } from './deliver.ts';
import { emailOf } from './email.ts';
import type { EmailReceiver, Message, Notification } from './receivers.ts';

const NEVER = new AbortController().signal;
const NOW = Date.UTC(2026, 0, 1);
/** The limit for `waitFor`. A busy machine needs longer than the default. */
const WAIT = { timeout: 10_000 };
const PASSWORD = 'P4SSW0RD-0F-THESE-TESTS';
const validity = validFrom(systemClock.now());
const subject = { commonName: 'mail of these tests' };
const authority = createAuthority(subject, validity);

function identityFor(address: string) {
  const names = { dns: [], addresses: [address] };
  const issuer = { subject, key: authority.key };
  const { certificate: cert, key } = issueServer(issuer, names, validity);
  return { cert, key };
}
const identity = identityFor('127.0.0.1');

const LOGIN = { username: 'refit', password: `${PASSWORD}\n`, 'ca.crt': authority.certificate };

function delivererWith(values: Readonly<Record<string, string>> = LOGIN) {
  const api = new MemoryApi();
  const data = Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  );
  api.put(secrets, { metadata: { name: 'smtp' }, data });
  const clock = new FakeClock(NOW);
  return deliverer({ client: api.client, namespace: 'refit-system', environment: {}, clock });
}

function note(message: string): Notification {
  return { id: 'n', event: 'Done', plan: 'toy/ns/plan', message, at: '2026-11-20T10:00:00Z' };
}
const MESSAGE: Message = { id: 'm1', policy: 'careful', notes: [note('toy: done')] };

function receiverAt(server: string, more: Partial<EmailReceiver> = {}): EmailReceiver {
  return {
    name: 'mail',
    type: 'Email',
    events: ['Done'],
    server,
    from: 'refit@example.org',
    to: ['a@example.org', 'b@example.org'],
    secretName: 'smtp',
    isPlain: false,
    ...more,
  };
}

test.each<[string, string, SmtpTraits]>([
  ['with TLS from the first byte', 'smtps', { identity, isImplicit: true, hasAuth: true }],
  ['after STARTTLS', 'smtp', { identity, hasAuth: true }],
])('%s, password and message are encrypted', async (_what, scheme, traits) => {
  await using server = await startSmtpServer(traits);
  const receiver = receiverAt(`${scheme}://127.0.0.1:${server.port}`);
  expect(await delivererWith()(receiver, MESSAGE, NEVER)).toBeUndefined();
  expect(server.logins).toEqual([{ pair: `refit ${PASSWORD}`, isEncrypted: true }]);
  expect(server.commands).toEqual(
    expect.arrayContaining([
      'MAIL FROM:<refit@example.org>',
      'RCPT TO:<a@example.org>',
      'RCPT TO:<b@example.org>',
    ]),
  );
  const [{ text, isEncrypted } = { text: '', isEncrypted: false }] = server.mails;
  expect([server.mails.length, isEncrypted]).toEqual([1, true]);
  const [head = '', body] = text.split('\r\n\r\n', 2);
  expect(head.split('\r\n').toSorted()).toEqual([
    'Auto-Submitted: auto-generated',
    'Content-Transfer-Encoding: 7bit',
    'Content-Type: text/plain; charset=utf-8',
    'Date: Thu, 01 Jan 2026 00:00:00 +0000',
    'From: Refit <refit@example.org>',
    'MIME-Version: 1.0',
    'Message-ID: <m1@example.org>',
    'Subject: Refit: toy: done',
    'To: a@example.org, b@example.org',
  ]);
  expect(body?.split('\r\n')).toEqual(['toy: done', 'See what was done: refit report toy/ns/plan']);
  await vi.waitFor(() => expect(server.open()).toBe(0), WAIT);
});

test.each<[string, string, SmtpTraits, Readonly<Record<string, string>>, string]>([
  [
    'hides STARTTLS',
    'smtp',
    { identity, hidesTls: true, hasAuth: true },
    LOGIN,
    'it does not speak TLS after STARTTLS (502)',
  ],
  [
    'has a certificate for another address',
    'smtp',
    { identity: identityFor('127.0.0.2'), hasAuth: true },
    LOGIN,
    'it cannot be reached (ERR_TLS_CERT_ALTNAME_INVALID)',
  ],
  [
    'has a certificate for another address from the first byte',
    'smtps',
    { identity: identityFor('127.0.0.2'), isImplicit: true },
    LOGIN,
    'it cannot be reached (ERR_TLS_CERT_ALTNAME_INVALID)',
  ],
  [
    'has a certificate of an unknown authority',
    'smtps',
    { identity, isImplicit: true, hasAuth: true },
    { ...LOGIN, 'ca.crt': '' },
    'it cannot be reached (UNABLE_TO_VERIFY_LEAF_SIGNATURE)',
  ],
])(
  'a server that %s gets neither password nor message',
  async (_what, scheme, traits, values, problem) => {
    await using server = await startSmtpServer(traits);
    const receiver = receiverAt(`${scheme}://127.0.0.1:${server.port}`);
    expect(await delivererWith(values)(receiver, MESSAGE, NEVER)).toBe(problem);
    expect([server.logins, server.mails]).toEqual([[], []]);
  },
);

test.each<[string, SmtpTraits, string]>([
  [
    'AUTH',
    {
      hasAuth: true,
      answer: (line) => (line.startsWith('AUTH') ? `535 no ${line} ${PASSWORD}` : undefined),
    },
    'it did not accept username and password (535)',
  ],
  ['AUTH, which it does not offer', {}, 'it did not accept username and password (502)'],
  [
    'the sender',
    { hasAuth: true, answer: (line) => (line.startsWith('MAIL') ? `550 ${PASSWORD}` : undefined) },
    'it refused the sender or every recipient (550)',
  ],
  [
    'every recipient',
    { hasAuth: true, answer: (line) => (line.startsWith('RCPT') ? `451 ${PASSWORD}` : undefined) },
    'it refused the sender or every recipient (451)',
  ],
  [
    'the message',
    { hasAuth: true, answer: (line) => (line === '.' ? `554 ${PASSWORD}` : undefined) },
    'it refused the message (554)',
  ],
  [
    'everybody',
    { answer: (line) => (line === '' ? `554 ${PASSWORD}` : undefined) },
    'it does not speak SMTP (554)',
  ],
])('a server that refuses %s is named with its status alone', async (_what, traits, problem) => {
  await using server = await startSmtpServer({ identity, ...traits });
  const receiver = receiverAt(`smtp://127.0.0.1:${server.port}`);
  expect(await delivererWith()(receiver, MESSAGE, NEVER)).toBe(problem);
  expect(server.mails.length).toBeLessThanOrEqual(1);
});

test('if a server refuses one recipient, the others get the message once', async () => {
  const answer = (line: string) => (line.startsWith('RCPT TO:<b@') ? '550 unknown' : undefined);
  await using server = await startSmtpServer({ identity, hasAuth: true, answer });
  const receiver = receiverAt(`smtp://127.0.0.1:${server.port}`);
  expect(await delivererWith()(receiver, MESSAGE, NEVER)).toEqual({
    partly: 'it refused 1 of 2 recipients',
  });
  expect(server.mails).toHaveLength(1);
});

test('without TLS only if the policy says so, and then without a password', async () => {
  await using server = await startSmtpServer({ hasAuth: true });
  const receiver = receiverAt(`smtp://127.0.0.1:${server.port}`, { secretName: undefined });
  const deliver = delivererWith({});
  expect(await deliver(receiver, MESSAGE, NEVER)).toBe(
    'it does not speak TLS after STARTTLS (502)',
  );
  expect(await deliver({ ...receiver, isPlain: true }, MESSAGE, NEVER)).toBeUndefined();
  expect(server.mails).toMatchObject([{ isEncrypted: false }]);
  expect(server.logins).toEqual([]);
});

test('a server that says nothing is left when the term ends, and nothing stays open', async () => {
  await using server = await startSmtpServer({ answer: () => 'nothing' });
  const stop = new AbortController();
  const receiver = receiverAt(`smtp://127.0.0.1:${server.port}`);
  const sending = delivererWith()(receiver, MESSAGE, stop.signal);
  await vi.waitFor(() => expect(server.open()).toBe(1), WAIT);
  stop.abort();
  expect(await sending).toBe('it cannot be reached');
  await vi.waitFor(() => expect(server.open()).toBe(0), WAIT);
});

test('a server that is not there is named without its address', async () => {
  const receiver = receiverAt('smtps://127.0.0.1:1');
  expect(await delivererWith()(receiver, MESSAGE, NEVER)).toBe(
    'it cannot be reached (ECONNREFUSED)',
  );
});

test.each<[string, Readonly<Record<string, string>>, string]>([
  ['no password', { username: 'a' }, 'must have both username and password, or neither'],
  ['nothing of use', { token: 'a' }, 'has neither username and password, nor ca.crt'],
])('a Secret with %s: nothing is sent', async (_what, values, problem) => {
  await using server = await startSmtpServer({ identity });
  const receiver = receiverAt(`smtp://127.0.0.1:${server.port}`);
  expect(await delivererWith(values)(receiver, MESSAGE, NEVER)).toBe(
    `Secret refit-system/smtp ${problem}`,
  );
  expect(server.commands).toEqual([]);
});

test('a password with a zero byte is not sent', async () => {
  const values = { username: 'a', password: `${PASSWORD}\0b` };
  expect(await delivererWith(values)(receiverAt('smtps://127.0.0.1:1'), MESSAGE, NEVER)).toBe(
    'username or password of Secret refit-system/smtp has characters that cannot be sent',
  );
});

test('no text of the cluster adds a header, a recipient or an end of the message, or turns the subject around', async () => {
  const evil = 'x\r\nBcc: all@example.org\r\n\r\n.\r\nMAIL FROM:<c@d>\u202Egnp.exe';
  await using server = await startSmtpServer({ identity, hasAuth: true });
  const receiver = receiverAt(`smtp://127.0.0.1:${server.port}`);
  const notes = [note(evil), note('.\u2067second'), note('ä'.repeat(600))];
  expect(await delivererWith()(receiver, { ...MESSAGE, notes }, NEVER)).toBeUndefined();
  expect(server.mails).toHaveLength(1);
  expect(server.commands.filter((line) => line.startsWith('RCPT'))).toHaveLength(2);
  expect(server.commands.filter((line) => line.startsWith('MAIL'))).toHaveLength(1);
  const [head = ''] = server.mails[0]?.text.split('\r\n\r\n', 1) ?? [];
  expect(head).not.toMatch(/^bcc/im);
  const { subject: shown, text } = emailOf(receiver, { ...MESSAGE, notes }, NOW);
  for (const part of [shown, text]) expect(part).not.toMatch(/[\r\u202A-\u202E\u2066-\u2069]/);
  expect(shown).not.toContain('\n');
  expect(shown.length).toBeLessThanOrEqual(150);
  expect(shown).toMatch(/ \(and 2 more\)$/);
  expect(text.split('\n\n')).toHaveLength(4);
});
