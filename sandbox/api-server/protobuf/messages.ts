/**
 * The protobuf messages of the built-in kinds, as `generated.proto` of Kubernetes declares them. The file was recorded
 * from these declarations; test/conformance/protobuf.test.ts compares it with them, and updates it with `--update`.
 */
import { readFileSync } from 'node:fs';

/** A field of a message. */
export interface MessageField {
  readonly name: string;
  /** A type of protobuf, such as `string`, or the name of a message. */
  readonly type: string;
  readonly within: 'none' | 'list' | 'map';
}

/** The messages by name, each with its fields by number. `k8s.io.` is left out of the names. */
type Recorded = Readonly<Record<string, Readonly<Record<string, string>>>>;

const FILE = new URL('messages.json', import.meta.url);
const META = 'apimachinery.pkg.apis.meta.v1';

/** The messages that clients send for the kinds that the server serves, without definitions of custom kinds. */
export const ROOTS: readonly string[] = [
  ...['Node', 'Pod', 'Namespace', 'Event', 'Secret', 'ConfigMap'].map(
    (kind) => `api.core.v1.${kind}`,
  ),
  'api.authorization.v1.SelfSubjectAccessReview',
  'api.batch.v1.Job',
  'api.coordination.v1.Lease',
  'api.policy.v1.Eviction',
  'api.policy.v1.PodDisruptionBudget',
  `${META}.DeleteOptions`,
];

let recorded: Recorded | undefined;

function messages(): Recorded {
  recorded ??= JSON.parse(readFileSync(FILE, 'utf8')) as Recorded;
  return recorded;
}

/** Returns the name of the message of a kind; undefined if the server does not read this kind from protobuf. */
export function messageOf(apiVersion: string, kind: string): string | undefined {
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  const name =
    kind === 'DeleteOptions'
      ? `${META}.${kind}`
      : `api.${group.split('.')[0] || 'core'}.${version}.${kind}`;
  return ROOTS.includes(name) ? name : undefined;
}

const WITHIN = { '[]': 'list', '{}': 'map' } as const;

/** Returns a field of a message; undefined if the message has no field with this number. */
export function fieldOf(message: string, number: number): MessageField | undefined {
  const [name = '', declared = ''] = messages()[message]?.[number]?.split(' ') ?? [];
  if (name === '') return undefined;
  const [, container = '', type = ''] = /^(\[\]|\{\})?(.*)$/.exec(declared) ?? [];
  return {
    name,
    type,
    within: container === '[]' || container === '{}' ? WITHIN[container] : 'none',
  };
}

/** Reports whether the type is a message, not a type of protobuf itself. */
export const isMessage = (type: string): boolean => type in messages();
