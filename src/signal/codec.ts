/** Encodes and decodes a signal: two annotations, exactly as k0s reads and writes them. */
import { isRecord, parseJson } from '../util/json.ts';
import { onceForEach } from '../util/memo.ts';
import { SIGNAL_DATA_ANNOTATION, SIGNAL_VERSION_ANNOTATION } from './names.ts';

export interface SignalCommand {
  readonly id: number;
  readonly kind: 'k0supdate' | 'airgapupdate';
  readonly url: string;
  readonly version: string;
  readonly sha256?: string;
  readonly forceupdate?: boolean;
}

export interface SignalData {
  readonly planId: string;
  /** Never parsed: with planId and command id it names one signal. */
  readonly created: string;
  readonly command: SignalCommand;
  readonly status?: { readonly status: string; readonly timestamp: string };
}

export type Annotations = Readonly<Record<string, string>>;

/** Undefined when there is no signal, or none that a k0s node would accept. */
export function decodeSignal(annotations: Annotations | undefined): SignalData | undefined {
  return annotations && decode(annotations);
}

/** Cached: thousands of nodes are read every second, and almost none has changed. */
const decode = onceForEach((annotations: Annotations): SignalData | undefined =>
  annotations[SIGNAL_VERSION_ANNOTATION] === 'v2'
    ? toSignal(parseJson(annotations[SIGNAL_DATA_ANNOTATION]))
    : undefined,
);

/** The two annotations of a signal, in the key order and with the escapes that k0s itself writes. */
export function encodeSignal({ planId, created, command, status }: SignalData): Record<string, string> {
  const { id, kind, url, version, sha256, forceupdate } = command;
  const body = { url, version, ...(sha256 ? { sha256 } : {}), ...(forceupdate ? { forceupdate } : {}) };
  const data = { planId, created, command: { id, [kind]: body }, ...(status ? { status } : {}) };
  return { [SIGNAL_VERSION_ANNOTATION]: 'v2', [SIGNAL_DATA_ANNOTATION]: escapeLikeGo(JSON.stringify(data)) };
}

/** Go's encoder escapes these five characters; in JSON they occur only in strings. */
function escapeLikeGo(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function toSignal(value: unknown): SignalData | undefined {
  if (!isRecord(value) || !isText(value['planId']) || !isText(value['created'])) return undefined;
  const command = toCommand(value['command']);
  if (!command) return undefined;
  const signal = { planId: value['planId'], created: value['created'], command };
  if (value['status'] === undefined || value['status'] === null) return signal;
  const status = value['status'];
  if (!isRecord(status) || !isText(status['status']) || !isText(status['timestamp'])) return undefined;
  return { ...signal, status: { status: status['status'], timestamp: status['timestamp'] } };
}

function toCommand(value: unknown): SignalCommand | undefined {
  if (!isRecord(value) || !Number.isInteger(value['id'])) return undefined;
  const kinds = (['k0supdate', 'airgapupdate'] as const).filter((kind) => isRecord(value[kind]));
  const [kind] = kinds;
  const body = kind && kinds.length === 1 ? value[kind] : undefined;
  if (!kind || !isRecord(body) || !isText(body['version']) || !isUrl(body['url'])) return undefined;
  // As Go: null counts as absent, and another type is refused. Ignoring a bad sha256 would skip the verification.
  if (typeof (body['sha256'] ?? '') !== 'string' || typeof (body['forceupdate'] ?? false) !== 'boolean')
    return undefined;
  return {
    id: value['id'] as number,
    kind,
    url: body['url'],
    version: body['version'],
    ...(isText(body['sha256']) ? { sha256: body['sha256'] } : {}),
    ...(body['forceupdate'] === true ? { forceupdate: true } : {}),
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isUrl(value: unknown): value is string {
  return isText(value) && URL.canParse(value);
}
