/** Tests the subject of e-mails, and how Refit reaches mail servers that need no login or do not answer. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { MemoryApi } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { startSmtpServer } from '../../test/support/doubles/smtp-server.ts';
import { createAuthority, issueServer, validFrom } from '../../tools/controlplane/certs.ts';
import { secrets } from '../kube/resources.ts';
import { systemClock } from '../util/clock.ts';
import { deliverer } from './deliver.ts';
import { emailOf, sendEmail } from './email.ts';
import type { EmailReceiver, Message } from './receivers.ts';

const NEVER = new AbortController().signal;
const NOW = Date.UTC(2026, 0, 1);
/** The limit for `waitFor`. A busy machine needs longer than the default. */
const WAIT = { timeout: 10_000 };

function messageOf(...texts: readonly string[]): Message {
  const note = { id: 'n', event: 'Done', plan: 'toy/ns/plan', at: '2026-11-20T10:00:00Z' } as const;
  const notes = texts.map((message) => ({ ...note, message }));
  return { id: 'm1', policy: 'careful', notes };
}

function receiverAt(server: string, more: Partial<EmailReceiver> = {}): EmailReceiver {
  return {
    name: 'mail',
    type: 'Email',
    events: ['Done'],
    server,
    from: 'refit@example.org',
    to: ['a@example.org'],
    isPlain: false,
    ...more,
  };
}

function tools(data: Readonly<Record<string, string>> = {}) {
  const api = new MemoryApi();
  api.put(secrets, { metadata: { name: 'smtp' }, data });
  return { client: api.client, namespace: 'refit-system', clock: new FakeClock(NOW) };
}

/** `Refit: ` and this text have the longest length that a subject may have. */
const LONGEST = 'x'.repeat(143);

test.each<[string, readonly string[], string]>([
  ['of one short note', ['done'], 'Refit: done'],
  ['of two notes', ['done', 'failed'], 'Refit: done (and 1 more)'],
  ['with the most characters', [LONGEST], `Refit: ${LONGEST}`],
  ['with one character too many', [`${LONGEST}x`], `Refit: ${'x'.repeat(142)}…`],
  [
    'of two notes with one character too many',
    [LONGEST, 'second'],
    `Refit: ${'x'.repeat(129)}… (and 1 more)`,
  ],
])('the subject %s is cut only if it is too long', (_title, texts, expected) => {
  const { subject } = emailOf(receiverAt('smtp://mail.test'), messageOf(...texts), NOW);
  expect(subject).toBe(expected);
  expect(subject.length).toBeLessThanOrEqual(150);
});

test('a subject that is cut within a character stays well-formed', () => {
  const message = messageOf(`${'x'.repeat(141)}😀😀`);
  const { subject } = emailOf(receiverAt('smtp://mail.test'), message, NOW);
  expect(subject.isWellFormed()).toBe(true);
  expect(subject).toMatch(/^Refit: x{141}.…$/u);
});

test('a Secret with only a certificate authority makes Refit send without a login', async () => {
  const validity = validFrom(systemClock.now());
  const subject = { commonName: 'mail of these tests' };
  const authority = createAuthority(subject, validity);
  const names = { dns: [], addresses: ['127.0.0.1'] };
  const issuer = { subject, key: authority.key };
  const { certificate: cert, key } = issueServer(issuer, names, validity);
  await using server = await startSmtpServer({ identity: { cert, key }, hasAuth: true });
  const values = { 'ca.crt': Buffer.from(authority.certificate).toString('base64') };
  const receiver = receiverAt(`smtp://127.0.0.1:${server.port}`, { secretName: 'smtp' });
  expect(await sendEmail(receiver, messageOf('done'), tools(values), NEVER)).toBeUndefined();
  expect(server.logins).toEqual([]);
  expect(server.mails).toMatchObject([{ isEncrypted: true }]);
});

test('a mail server that hangs up is reported without a code', async () => {
  const server = await startSmtpServer({ answer: () => 'nothing' });
  const receiver = receiverAt(`smtp://127.0.0.1:${server.port}`);
  const sending = sendEmail(receiver, messageOf('done'), tools(), NEVER);
  await vi.waitFor(() => expect(server.open()).toBe(1), WAIT);
  await server[Symbol.asyncDispose]();
  expect(await sending).toBe('it cannot be reached');
});

test('an IPv6 address of a mail server is used as an address, and not as a name', async () => {
  const problem = await sendEmail(receiverAt('smtp://[::1]:1'), messageOf('done'), tools(), NEVER);
  expect(problem).toMatch(/^it cannot be reached \(E[A-Z]+\)$/);
});

test('an e-mail whose delivery is aborted is no problem of the mail server', async () => {
  await using server = await startSmtpServer({ answer: () => 'nothing' });
  const stop = new AbortController();
  const receiver = receiverAt(`smtp://127.0.0.1:${server.port}`);
  const sending = sendEmail(receiver, messageOf('done'), tools(), stop.signal);
  await vi.waitFor(() => expect(server.open()).toBe(1), WAIT);
  stop.abort(new Error('the term has ended'));
  await expect(sending).rejects.toThrow('the term has ended');
});

test('a mail server that does not answer in time is reported with the limit', async () => {
  const late = new AbortController();
  const spy = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(late.signal);
  onTestFinished(() => spy.mockRestore());
  await using server = await startSmtpServer({ answer: () => 'nothing' });
  const receiver = receiverAt(`smtp://127.0.0.1:${server.port}`);
  const sending = deliverer({ ...tools(), environment: {} })(receiver, messageOf('done'), NEVER);
  await vi.waitFor(() => expect(server.open()).toBe(1), WAIT);
  late.abort();
  expect(await sending).toBe('it did not answer within 10 s');
});
