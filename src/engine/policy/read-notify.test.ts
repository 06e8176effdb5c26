/** Tests which receivers a policy names, and what `refit validate` prints about invalid receivers. */
import { expect, test } from 'vitest';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { readPolicy } from './read-policy.ts';

const ref = { name: 'refit-notify', key: 'chat' };
const chat = { name: 'chat', type: 'Slack', secretRef: ref, events: ['Done'] };
const room = {
  name: 'room',
  type: 'Matrix',
  url: 'https://matrix.example.org',
  room: '!abc:example.org',
  secretRef: ref,
  events: ['Failed'],
};

const email = { server: 'smtps://mail.example.org', from: 'refit@a.example', to: ['b@a.example'] };
const mail = { name: 'mail', type: 'Email', email, events: ['Done'] };

function mailWith(part: object): object {
  return { ...mail, email: { ...email, ...part } };
}

function read(...notify: readonly object[]) {
  const { notify: receivers, problems } = readPolicy(
    buildUpgradePolicy('careful', { notify } as unknown as UpgradePolicySpec),
  );
  const prefix = 'UpgradePolicy careful: ';
  return { receivers, problems: problems.map(({ message }) => message.replace(prefix, '')) };
}

test('a receiver has its address, its room and its events', () => {
  const records = {
    name: 'records',
    type: 'Webhook',
    url: 'http://records.example',
    signingKeyRef: { name: 'refit-notify', key: 'signing' },
    events: ['Started'],
  };
  expect(read(chat, records, room)).toEqual({
    problems: [],
    receivers: [
      { name: 'chat', type: 'Slack', events: ['Done'], address: { secret: ref } },
      {
        name: 'records',
        type: 'Webhook',
        events: ['Started'],
        address: { url: 'http://records.example' },
        signingKey: { name: 'refit-notify', key: 'signing' },
      },
      {
        name: 'room',
        type: 'Matrix',
        events: ['Failed'],
        server: 'https://matrix.example.org',
        room: '!abc:example.org',
        token: ref,
      },
    ],
  });
});

test('e-mail has its server, its addresses and its Secret, and needs TLS unless the policy says otherwise', () => {
  const plain = { server: 'smtp://relay', tls: 'None' };
  const found = read(mailWith({ secretName: 'smtp' }), { ...mailWith(plain), name: 'relay' });
  expect(found).toEqual({
    problems: [],
    receivers: [
      {
        name: 'mail',
        type: 'Email',
        events: ['Done'],
        ...email,
        secretName: 'smtp',
        isPlain: false,
      },
      {
        name: 'relay',
        type: 'Email',
        events: ['Done'],
        ...email,
        server: 'smtp://relay',
        isPlain: true,
      },
    ],
  });
});

const URL_RULE = 'must be a URL that begins with http:// or https:// and contains no credentials';
const MAILBOX_RULE =
  'must be one address without a name or quotes, for example operations@example.org';
const SERVER_RULE =
  'must be a URL that begins with smtps:// or smtp:// and has only a host and a port, for example smtps://mail.example.org';
const ADDRESS_RULE =
  'must be complete: it must have either url or secretRef, and no room; with type Matrix all three: url, room and secretRef; with type Email only email';

test.each<[string, readonly object[], string]>([
  [
    'a name twice',
    [chat, { ...room, name: 'chat' }],
    'spec.notify[1].name must be a name that no other receiver has; found "chat"',
  ],
  [
    'no address',
    [{ name: 'chat', type: 'Teams', events: ['Done'] }],
    `spec.notify[0] ${ADDRESS_RULE}; found ["name","type","events"]`,
  ],
  [
    'two addresses',
    [{ ...chat, url: 'https://chat.example' }],
    `spec.notify[0] ${ADDRESS_RULE}; found ["name","type","url","secretRef","events"]`,
  ],
  [
    'a room outside of Matrix',
    [{ ...chat, room: '!abc:example.org' }],
    `spec.notify[0] ${ADDRESS_RULE}; found ["name","type","secretRef","room","events"]`,
  ],
  [
    'Matrix without a token',
    [{ name: 'room', type: 'Matrix', url: room.url, room: room.room, events: ['Done'] }],
    `spec.notify[0] ${ADDRESS_RULE}; found ["name","type","url","room","events"]`,
  ],
  [
    'a key of the signature without Webhook',
    [{ ...chat, signingKeyRef: ref }],
    'spec.notify[0].type must be Webhook, the only type with signingKeyRef; found "Slack"',
  ],
  [
    'a URL of a file',
    [{ ...room, url: 'file:///etc' }],
    `spec.notify[0].url: is the text "file:///etc", ${URL_RULE}`,
  ],
  [
    'a URL with a password',
    [{ ...room, url: 'https://me:secret@a.example' }],
    `spec.notify[0].url: is the text "https://***@a.example", ${URL_RULE}`,
  ],
  [
    'an alias for a room',
    [{ ...room, room: '#ops:example.org' }],
    'spec.notify[0].room: is the text "#ops:example.org", must be the id of a room, such as !abc:example.org; an alias is no id',
  ],
  [
    'a name in capitals',
    [{ ...chat, name: 'Chat' }],
    'spec.notify[0].name: is the text "Chat", must consist of lower-case letters, digits and hyphens, for example team-chat',
  ],
  [
    'a type that is none',
    [{ ...chat, type: 'Pager' }],
    'spec.notify[0].type: is the text "Pager", expected Slack, Teams, Matrix, Webhook or Email',
  ],
  [
    'an event that is none',
    [{ ...chat, events: ['Begun'] }],
    'spec.notify[0].events[0]: is the text "Begun", expected Started, WaveDone, WaitingForApproval, WaitingLong, Failed or Done',
  ],
  [
    'e-mail without an address',
    [{ name: 'mail', type: 'Email', events: ['Done'] }],
    `spec.notify[0] ${ADDRESS_RULE}; found ["name","type","events"]`,
  ],
  [
    'e-mail with a URL',
    [{ ...mail, url: 'https://a.example' }],
    `spec.notify[0] ${ADDRESS_RULE}; found ["name","type","url","email","events"]`,
  ],
  [
    'e-mail to a chat',
    [{ ...chat, email }],
    `spec.notify[0] ${ADDRESS_RULE}; found ["name","type","secretRef","email","events"]`,
  ],
  ...[
    'a@b.example\r\nBcc: c@b.example',
    'A <a@b.example>',
    'a@b,c@d',
    '"a b"@c',
    'a',
    '.a@b',
    'a@-b',
  ].map((from): [string, object[], string] => [
    `a sender ${JSON.stringify(from)}`,
    [mailWith({ from })],
    `spec.notify[0].email.from: is the text ${JSON.stringify(from)}, ${MAILBOX_RULE}`,
  ]),
  [
    'a recipient with a line break',
    [mailWith({ to: ['a@b.example', 'a@b.example\n'] })],
    `spec.notify[0].email.to[1]: is the text "a@b.example\\n", ${MAILBOX_RULE}`,
  ],
  ...['smtp://a:70000', 'https://a.example', 'smtps://a/b', 'mail.example'].map(
    (server): [string, object[], string] => [
      `a server ${server}`,
      [mailWith({ server })],
      `spec.notify[0].email.server: is the text "${server}", ${SERVER_RULE}`,
    ],
  ),
  [
    'a server with a password',
    [mailWith({ server: 'smtps://me:secret@a.example' })],
    `spec.notify[0].email.server: is the text "smtps://***@a.example", ${SERVER_RULE}`,
  ],
  [
    'a password without TLS',
    [mailWith({ server: 'smtp://a', tls: 'None', secretName: 'smtp' })],
    'spec.notify[0].email: is an object, must have no secretName if tls is None: everybody on the network path could read the password',
  ],
  [
    'no events',
    [{ ...chat, events: [] }],
    'spec.notify[0].events: has 0 items, expected a list with at least 1 item',
  ],
  [
    'a Secret without a key',
    [{ ...chat, secretRef: { name: 'a' } }],
    'spec.notify[0].secretRef.key: is missing, expected a text',
  ],
  [
    'a field that nobody knows',
    [{ ...chat, channel: '#ops' }],
    'spec.notify[0]: has no member channel, check the spelling',
  ],
])(
  '%s: the problem names the field, what was found and what would be right',
  (_what, notify, problem) => {
    expect(read(...notify).problems).toEqual([problem]);
  },
);
