/**
 * Writes messages in the formats that receivers publish. The texts come from the cluster, so each format is chosen or escaped in such a way
 * that no text can contain formatting, a link or a mention of a user.
 */
import type { HttpReceiver, Message } from './receivers.ts';

export interface Written {
  readonly method: 'POST' | 'PUT';
  /** The path that is appended to the URL of the receiver; empty if the URL is the whole address. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

type Format = (message: Message) => Omit<Written, 'method' | 'path' | 'headers'>;

const FORMATS: Readonly<Record<Exclude<HttpReceiver['type'], 'Matrix'>, Format>> = {
  Slack: (message) => ({ body: { text: textForSlack(linesOf(message)), mrkdwn: false } }),
  Teams: (message) => ({ body: cardOf(message) }),
  Webhook: ({ id, policy, notes }) => ({ body: { version: 1, id, policy, notes } }),
};

/**
 * Returns the request that delivers this message to the receiver, without the address of the receiver and without
 * secrets.
 */
export function written(receiver: HttpReceiver, message: Message): Written {
  if (receiver.type === 'Matrix') {
    const event = [receiver.room, 'send', 'm.room.message', message.id];
    return {
      method: 'PUT',
      path: `/_matrix/client/v3/rooms/${event.map(encodeURIComponent).join('/')}`,
      headers: {},
      // Without a formatted body, clients show the text as it is. The empty mentions notify no user, whatever the text says.
      body: { msgtype: 'm.notice', body: linesOf(message), 'm.mentions': {} },
    };
  }
  const headers: Record<string, string> =
    receiver.type === 'Webhook' ? { 'idempotency-key': message.id } : {};
  return { method: 'POST', path: '', headers, ...FORMATS[receiver.type](message) };
}

function linesOf({ notes }: Message): string {
  return notes.map(({ message }) => message).join('\n');
}

/** Slack has control sequences in angle brackets. Slack requires that these three characters are escaped. */
function textForSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** A RichTextBlock shows its text as it is, whereas a TextBlock would read it as Markdown. */
function cardOf({ notes }: Message): object {
  const body = notes.map(({ message }) => ({
    type: 'RichTextBlock',
    inlines: [{ type: 'TextRun', text: message }],
  }));
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body,
  };
  const contentType = 'application/vnd.microsoft.card.adaptive';
  return { type: 'message', attachments: [{ contentType, contentUrl: null, content }] };
}
