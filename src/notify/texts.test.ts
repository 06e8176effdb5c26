/** Tests what a person reads of each event in each receiver, as the receiver shows it. */
import { expect, test } from 'vitest';
import { emailOf } from './email.ts';
import { written } from './formats.ts';
import type {
  EmailReceiver,
  HttpReceiver,
  Message,
  MessageSender,
  Notification,
} from './receivers.ts';
import { linesOf, textsOf } from './texts.ts';

const SENDER: MessageSender = { cluster: 'prod', pageUrl: 'https://refit.example.org/' };
const LINK = 'https://refit.example.org/#plan=autopilot%2F%2Fautopilot';

function noteOf(event: Notification['event'], plan = 'autopilot/autopilot', message = 'said') {
  return { id: event, event, plan, message, at: '2026-11-20T10:00:00Z' };
}

const messageOf = (...notes: readonly Notification[]): Message => ({
  id: 'm',
  policy: 'careful',
  notes,
});
const readBy = (...notes: readonly Notification[]): readonly string[] =>
  textsOf(messageOf(...notes), SENDER).flatMap(linesOf);

test.each<[Notification['event'], readonly string[]]>([
  ['Started', ['Follow it: refit status autopilot/autopilot --watch']],
  ['WaveDone', ['See how far it is: refit status autopilot/autopilot']],
  ['WaitingForApproval', []],
  ['WaitingLong', ['Find out why: refit why autopilot/autopilot']],
  ['Failed', ['Find out why: refit why autopilot/autopilot']],
  ['Done', ['See what was done: refit report autopilot/autopilot']],
])('a message about %s names the cluster, what to do, and the page', (event, next) => {
  expect(readBy(noteOf(event))).toEqual(['[prod] said', ...next, LINK]);
});

test('a message about several nodes of a plan says once what to do', () => {
  const notes = [
    noteOf('Failed', undefined, 'w1 failed'),
    noteOf('Failed', undefined, 'w2 failed'),
  ];
  expect(readBy(...notes)).toEqual([
    '[prod] w1 failed',
    '[prod] w2 failed',
    'Find out why: refit why autopilot/autopilot',
    LINK,
  ]);
});

test('a name of a plan that a shell would split gets no command, and its link is encoded', () => {
  expect(readBy(noteOf('Failed', 'toy/a;b#c/<d>'))).toEqual([
    '[prod] said',
    'https://refit.example.org/#plan=toy%2Fa%3Bb%23c%2F%3Cd%3E',
  ]);
});

test('a message without a cluster and without a page has neither', () => {
  const texts = textsOf(messageOf(noteOf('Failed')), {});
  expect(texts.flatMap(linesOf)).toEqual(['said', 'Find out why: refit why autopilot/autopilot']);
});

const MESSAGE = messageOf(noteOf('Failed', undefined, 'w1 failed'));
const LINES = ['[prod] w1 failed', 'Find out why: refit why autopilot/autopilot', LINK];
const address = { url: 'http://127.0.0.1:1/' };
const chat = { name: 'chat', events: ['Failed'] } as const;
const token = { name: 'matrix', key: 'token' };

test.each<[string, HttpReceiver, unknown]>([
  ['Slack', { ...chat, type: 'Slack', address }, { text: LINES.join('\n'), mrkdwn: false }],
  [
    'Matrix',
    { ...chat, type: 'Matrix', server: 'http://127.0.0.1:1', room: '!r:example.org', token },
    { msgtype: 'm.notice', body: LINES.join('\n'), 'm.mentions': {} },
  ],
  [
    'Webhook',
    { ...chat, type: 'Webhook', address },
    {
      version: 1,
      id: 'm',
      policy: 'careful',
      cluster: 'prod',
      pageUrl: 'https://refit.example.org/',
      notes: MESSAGE.notes,
    },
  ],
])('%s gets the same text as every other receiver', (_name, receiver, body) => {
  expect(written(receiver, MESSAGE, SENDER).body).toEqual(body);
});

test('Teams gets the text as paragraphs, and the page as a button', () => {
  const { body } = written({ ...chat, type: 'Teams', address }, MESSAGE, SENDER);
  const text = JSON.stringify(body);
  for (const line of LINES.slice(0, 2)) expect(text).toContain(`"text":"${line}"`);
  expect(body).toMatchObject({
    attachments: [
      { content: { actions: [{ type: 'Action.OpenUrl', title: 'Open Refit', url: LINK }] } },
    ],
  });
});

test('an e-mail has the cluster in its subject, and the whole text', () => {
  const receiver: EmailReceiver = {
    ...chat,
    type: 'Email',
    server: 'smtp://127.0.0.1',
    from: 'refit@example.org',
    to: ['a@example.org'],
    isPlain: true,
  };
  const { subject, text } = emailOf(receiver, MESSAGE, 0, SENDER);
  expect(subject).toBe('Refit: [prod] w1 failed');
  expect(text).toBe(`${LINES.join('\n')}\n\n-- \nRefit, UpgradePolicy careful\n`);
});
