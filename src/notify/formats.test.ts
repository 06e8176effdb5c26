/**
 * Tests that each message has the format that its receiver publishes, and that no text of the cluster can control the
 * receiver.
 */
import { expect, test } from 'vitest';
import { written } from './formats.ts';
import type { HttpReceiver, Message, Notification } from './receivers.ts';

const EVIL = '<!channel> & <https://evil.test|here> *bold* [x](https://evil.test) @room';

function note(message: string): Notification {
  return { id: 'n1', event: 'Failed', plan: 'toy/ns/plan', message, at: '2026-11-20T10:00:00Z' };
}

const MESSAGE: Message = { id: 'm1', policy: 'careful', notes: [note('first'), note(EVIL)] };
const address = { url: 'http://127.0.0.1:1/' };

function receiver(type: 'Slack' | 'Teams' | 'Webhook'): HttpReceiver {
  return { name: 'chat', events: ['Failed'], type, address };
}

test('Slack: a text, with the three control characters escaped and without formatting', () => {
  expect(written(receiver('Slack'), MESSAGE)).toEqual({
    method: 'POST',
    path: '',
    headers: {},
    body: {
      text: 'first\n&lt;!channel&gt; &amp; &lt;https://evil.test|here&gt; *bold* [x](https://evil.test) @room\nFind out why: refit why toy/ns/plan',
      mrkdwn: false,
    },
  });
});

test('Teams: an adaptive card in the envelope of a workflow, with texts that are no Markdown', () => {
  const { body } = written(receiver('Teams'), MESSAGE);
  expect(body).toEqual({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [
            { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: 'first' }] },
            { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: EVIL }] },
            {
              type: 'RichTextBlock',
              inlines: [{ type: 'TextRun', text: 'Find out why: refit why toy/ns/plan' }],
            },
          ],
        },
      },
    ],
  });
});

test('Matrix: a notice without mentions, whose transaction is the id of the message', () => {
  const token = { name: 'matrix', key: 'token' };
  const room = '!a b/c:example.org';
  const more = { name: 'chat', events: ['Failed'], server: 'http://127.0.0.1:1', token } as const;
  expect(written({ ...more, type: 'Matrix', room }, MESSAGE)).toEqual({
    method: 'PUT',
    path: '/_matrix/client/v3/rooms/!a%20b%2Fc%3Aexample.org/send/m.room.message/m1',
    headers: {},
    body: {
      msgtype: 'm.notice',
      body: `first\n${EVIL}\nFind out why: refit why toy/ns/plan`,
      'm.mentions': {},
    },
  });
});

test('Webhook: the notes as they are, with a key that is the same in each attempt', () => {
  expect(written(receiver('Webhook'), MESSAGE)).toEqual({
    method: 'POST',
    path: '',
    headers: { 'idempotency-key': 'm1' },
    body: { version: 1, id: 'm1', policy: 'careful', notes: MESSAGE.notes },
  });
});
