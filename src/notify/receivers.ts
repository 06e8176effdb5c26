/** Defines the receivers of policies, and the messages that they get. */

/** The events that messages can be about. */
export type NotifiedEvent =
  | 'Started'
  | 'WaveDone'
  | 'WaitingForApproval'
  | 'WaitingLong'
  | 'Failed'
  | 'Done';

export interface SecretRef {
  readonly name: string;
  readonly key: string;
}

interface AnyReceiver {
  readonly name: string;
  readonly events: readonly NotifiedEvent[];
}

/** A receiver with one address, which is either in the policy or in a Secret. */
interface AddressedReceiver extends AnyReceiver {
  readonly type: 'Slack' | 'Teams' | 'Webhook';
  readonly address: { readonly url: string } | { readonly secret: SecretRef };
  /** The reference to the key that signs requests to a webhook. Without the key, requests are not signed. */
  readonly signingKey?: SecretRef | undefined;
}

interface MatrixReceiver extends AnyReceiver {
  readonly type: 'Matrix';
  /** The URL of the home server. */
  readonly server: string;
  readonly room: string;
  /** The reference to the access token in a Secret. */
  readonly token: SecretRef;
}

export interface EmailReceiver extends AnyReceiver {
  readonly type: 'Email';
  /** A URL that begins with smtp:// or smtps://. */
  readonly server: string;
  readonly from: string;
  readonly to: readonly string[];
  /** The Secret with the user, the password and the certificate authority; undefined if none of them is needed. */
  readonly secretName?: string | undefined;
  /** True if the message may be sent without TLS. Then no password is sent. */
  readonly isPlain: boolean;
}

/** A receiver that gets its messages over HTTP. */
export type HttpReceiver = AddressedReceiver | MatrixReceiver;

export type Receiver = HttpReceiver | EmailReceiver;

/** One note for a receiver. */
export interface Notification {
  /** The id. It is the same for the same note, in every process. */
  readonly id: string;
  readonly event: NotifiedEvent;
  /** The plan, as `<dialect>/<namespace>/<name>`. */
  readonly plan: string;
  /** One sentence, without control characters. It may contain text from anywhere in the cluster. */
  readonly message: string;
  /** The time of the event, in RFC 3339. */
  readonly at: string;
}

/** A note for which a person has asked. Nothing has happened, so its plan is empty. */
export interface TestNote extends Omit<Notification, 'event'> {
  readonly event: 'Test';
}

/** The notes that are sent together. */
export interface Message {
  /** The id. It is always the same for the same notes and the same receiver. */
  readonly id: string;
  readonly policy: string;
  readonly notes: readonly (Notification | TestNote)[];
}

/** Who sends a message, for the people who read messages of several clusters. */
export interface MessageSender {
  /** The name of the cluster; undefined if nobody has said it. */
  readonly cluster?: string | undefined;
  /** The address of the page of `refit controller --ui-address`; undefined if nobody has said it. */
  readonly pageUrl?: string | undefined;
}

export const PAGE_URL_ADVICE = 'write an http or https address without a fragment';

/** Returns true if the text can be the address of the page. Messages append a fragment to it. */
export function isPageUrl(text: string): boolean {
  return /^https?:\/\//.test(text) && !text.includes('#') && URL.canParse(text);
}

/** The receiver accepted the message for some recipients only. If it is sent again, these recipients get it twice. */
export interface PartlyTaken {
  /** The problem, as a clause without a secret. */
  readonly partly: string;
}

/** The state of the delivery to the receivers of a plan. */
export interface Delivery {
  readonly isGood: boolean;
  readonly message: string;
}
