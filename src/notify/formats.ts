/**
 * Writes messages in the formats that receivers publish. The texts come from the cluster, so each format is chosen or escaped in such a way
 * that no text can contain formatting, a link or a mention of a user.
 */
import { defined } from '../util/json.ts';
import type { HttpReceiver, Message, MessageSender } from './receivers.ts';
import { linesOf, textsOf } from './texts.ts';

export interface Written {
  readonly method: 'POST' | 'PUT';
  /** The path that is appended to the URL of the receiver; empty if the URL is the whole address. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

type Format = (
  message: Message,
  sender: MessageSender,
) => Omit<Written, 'method' | 'path' | 'headers'>;

const FORMATS: Readonly<Record<Exclude<HttpReceiver['type'], 'Matrix'>, Format>> = {
  Slack: (message, sender) => ({
    body: { text: textForSlack(wholeText(message, sender)), mrkdwn: false },
  }),
  Teams: (message, sender) => ({ body: cardOf(message, sender) }),
  Webhook: ({ id, policy, notes }, { cluster, pageUrl }) => ({
    body: defined({ version: 1, id, policy, cluster, pageUrl, notes }),
  }),
};

/**
 * Returns the request that delivers this message to the receiver, without the address of the receiver and without
 * secrets.
 */
export function written(
  receiver: HttpReceiver,
  message: Message,
  sender: MessageSender = {},
): Written {
  if (receiver.type === 'Matrix') {
    const event = [receiver.room, 'send', 'm.room.message', message.id];
    return {
      method: 'PUT',
      path: `/_matrix/client/v3/rooms/${event.map(encodeURIComponent).join('/')}`,
      headers: {},
      // Without a formatted body, clients show the text as it is. The empty mentions notify no user, whatever the text says.
      body: { msgtype: 'm.notice', body: wholeText(message, sender), 'm.mentions': {} },
    };
  }
  const headers: Record<string, string> =
    receiver.type === 'Webhook' ? { 'idempotency-key': message.id } : {};
  return { method: 'POST', path: '', headers, ...FORMATS[receiver.type](message, sender) };
}

function wholeText(message: Message, sender: MessageSender): string {
  return textsOf(message, sender).flatMap(linesOf).join('\n');
}

/** Slack has control sequences in angle brackets. Slack requires that these three characters are escaped. */
function textForSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** A RichTextBlock shows its text as it is, whereas a TextBlock would read it as Markdown. */
function cardOf(message: Message, sender: MessageSender): object {
  const texts = textsOf(message, sender);
  const body = texts
    .flatMap(({ title, next }) => [title, next ?? []].flat())
    .map((text) => ({ type: 'RichTextBlock', inlines: [{ type: 'TextRun', text }] }));
  const links = [...new Set(texts.flatMap(({ link }) => link ?? []))];
  const actions = links.map((url) => ({ type: 'Action.OpenUrl', title: 'Open Refit', url }));
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body,
    ...(actions.length > 0 && { actions }),
  };
  const contentType = 'application/vnd.microsoft.card.adaptive';
  return { type: 'message', attachments: [{ contentType, contentUrl: null, content }] };
}
