/** Defines the schema of `notify` of an UpgradePolicy. */
import { z } from 'zod';
import { LONGEST, nameOfObject, object, optional } from '../crd.ts';
import { rules } from './policy-values.ts';

/** The maximum number of receivers. Without this limit, a policy could make the leader send any number of messages. */
const MOST_RECEIVERS = 10;
const LONGEST_RECEIVER = 30;
const LONGEST_ADDRESS = 2048;
/** The longest identifier of a room that Matrix allows. */
const LONGEST_ROOM = 255;

// The CEL rules that contain a pattern use a raw string (such as `r'…'`), because CEL takes backslashes literally only
// in a raw string.
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const URL_START = /^https?:\/\/[^\s@]+$/;
const ROOM = /^![^\s/]+$/;
const WANTED_URL = 'must be a URL that begins with http:// or https:// and contains no credentials';
const WANTED_ROOM = 'must be the id of a room, such as !abc:example.org; an alias is no id';

export const RECEIVER_TYPES = ['Slack', 'Teams', 'Matrix', 'Webhook', 'Email'] as const;
export const NOTIFIED_EVENTS = [
  'Started',
  'WaveDone',
  'WaitingForApproval',
  'WaitingLong',
  'Failed',
  'Done',
] as const;

const secretRefSchema = object('One key of a Secret in the namespace of the controller.', {
  name: nameOfObject('The name of the Secret.'),
  key: z.string().min(1).max(LONGEST.name).describe('The key in its data.'),
});

const hasAddress =
  "self.type == 'Email' ? has(self.email) && !has(self.url) && !has(self.secretRef) && !has(self.room) : !has(self.email) && " +
  "(self.type == 'Matrix' ? has(self.url) && has(self.room) && has(self.secretRef) : has(self.url) != has(self.secretRef) && !has(self.room))";
export const WANTED_ADDRESS =
  'must have either url or secretRef, and no room; with type Matrix all three: url, room and secretRef; with type Email only email';

const isSignable = "self.type == 'Webhook' || !has(self.signingKeyRef)";
const WANTED_SIGNING = 'must have type Webhook if it has signingKeyRef';

/** The maximum number of recipients of one message. RFC 5321 requires that every server accepts at least 100. */
const MOST_RECIPIENTS = 20;
/** The longest address of a mailbox that RFC 5321 allows. */
const LONGEST_MAILBOX = 254;
// The host is a name, an IPv4 address, or an IPv6 address in brackets. A user, a path and other parts of a URL are not allowed.
const SMTP =
  /^smtps?:\/\/(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?)(:[0-9]{1,5})?$/;
const WANTED_SMTP =
  'must be a URL that begins with smtps:// or smtp:// and has only a host and a port, for example smtps://mail.example.org';
// Matches a dot-string of RFC 5321, an at sign, and a DNS name. Quotes, blanks, control characters and a second address are not allowed.
const MAILBOX =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+([.][A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*$/;
const WANTED_MAILBOX =
  'must be one address without a name or quotes, for example operations@example.org';
const mailboxSchema = z
  .string()
  .max(LONGEST_MAILBOX)
  .refine((mailbox) => MAILBOX.test(mailbox), WANTED_MAILBOX)
  // The pattern contains an apostrophe, so the rule encloses the pattern in double quotes.
  .meta(rules([`self.matches(r"${MAILBOX.source}")`, WANTED_MAILBOX]));

const PLAIN_RULES = [
  [
    "!has(self.tls) || self.tls != 'None' || !self.server.startsWith('smtps:')",
    'must have a server that begins with smtp:// if tls is None',
  ],
  [
    "!has(self.tls) || self.tls != 'None' || !has(self.secretName)",
    'must have no secretName if tls is None: everybody on the network path could read the password',
  ],
] as const;

const emailSchema = object('The mail server, and who sends and receives the e-mail.', {
  server: z
    .string()
    .max(LONGEST_ADDRESS)
    .refine((url) => SMTP.test(url) && URL.canParse(url), WANTED_SMTP)
    .meta(rules([`self.matches(r'${SMTP.source}')`, WANTED_SMTP]))
    .describe(
      'The mail server. `smtps://`: TLS from the first byte, on port 465 by default. `smtp://`: TLS with STARTTLS, on port 587 by default.',
    ),
  from: mailboxSchema.describe('The address of the sender.'),
  to: z
    .array(mailboxSchema)
    .min(1)
    .max(MOST_RECIPIENTS)
    .meta({ 'x-kubernetes-list-type': 'set' })
    .describe('The addresses that get each message. All recipients see all addresses.'),
  secretName: nameOfObject(
    'The name of a Secret in the namespace of the controller. The Secret contains `username` and `password`, and, if needed, `ca.crt`.',
  ).exactOptional(),
  tls: optional(
    '`Required`, the default: nothing is sent without TLS and a valid certificate. `None`, which needs `smtp://`: the message is sent without ' +
      'TLS, and without a password.',
    z.enum(['Required', 'None']),
  ),
})
  .refine(({ tls, server }) => tls !== 'None' || !server.startsWith('smtps:'), PLAIN_RULES[0][1])
  .refine(({ tls, secretName }) => tls !== 'None' || secretName === undefined, PLAIN_RULES[1][1])
  .meta(rules(...PLAIN_RULES));

const receiverSchema = object('One receiver.', {
  name: z
    .string()
    .max(LONGEST_RECEIVER)
    .regex(NAME, 'must consist of lower-case letters, digits and hyphens, for example team-chat')
    .describe('The name, which no other receiver of the policy has.'),
  type: z
    .enum(RECEIVER_TYPES)
    .describe(
      '`Slack`: an incoming webhook. `Teams`: a webhook of a workflow. `Matrix`: a room. `Webhook`: any server that takes JSON. `Email`: a mail server.',
    ),
  url: optional(
    'The address; with `Matrix`, the address of the home server. For an address that must stay secret, such as that of Slack or Teams, use `secretRef`.',
    z
      .string()
      .max(LONGEST_ADDRESS)
      .refine((url) => URL_START.test(url) && URL.canParse(url), WANTED_URL)
      .meta(rules([`self.matches(r'${URL_START.source}')`, WANTED_URL])),
  ),
  secretRef: optional(
    'The Secret and key that contain the address, instead of `url`. With `Matrix`, they contain the access token.',
    secretRefSchema,
  ),
  room: optional(
    'With `Matrix` only: the id of the room, such as `!abc:example.org`.',
    z
      .string()
      .max(LONGEST_ROOM)
      .refine((room) => ROOM.test(room), WANTED_ROOM)
      .meta(rules([`self.matches(r'${ROOM.source}')`, WANTED_ROOM])),
  ),
  signingKeyRef: optional(
    'With `Webhook` only: the Secret and key that contain the signing key for requests. The signing key must have 16 bytes or more; a newline at the end is part of it.',
    secretRefSchema,
  ),
  email: optional(
    'With `Email` only: the mail server, the sender and the recipients.',
    emailSchema,
  ),
  events: z
    .array(z.enum(NOTIFIED_EVENTS))
    .min(1)
    .meta({ 'x-kubernetes-list-type': 'set' })
    .describe(
      '`Started`: the first node may start. `WaveDone`: all nodes of a wave have ended. `WaitingForApproval`: a wave needs approval. `WaitingLong`: ' +
        'the plan has waited for 15 minutes for something that the policy does not ask for. `Failed`: a node or the plan has failed. `Done`: the plan is done.',
    ),
}).meta(rules([hasAddress, WANTED_ADDRESS], [isSignable, WANTED_SIGNING]));

export const notifySchema = optional(
  'The receivers of messages about plans. A receiver gets at most one message a minute; the next message contains what happens in between.',
  z
    .array(receiverSchema)
    .max(MOST_RECEIVERS)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
);
