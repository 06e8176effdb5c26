/** The rules of object metadata: names, labels, finalizers, and fields that no update may change. */
import { isDeepStrictEqual } from 'node:util';
import { type Cause, cause } from '../failure.ts';
import type { Kind } from '../kinds/kind.ts';
import type { ApiObject, Metadata } from '../store.ts';

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = String.raw`${LABEL}(\.${LABEL})*`;
const NAME_PART = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const LABEL_VALUE = `(${NAME_PART})?`;

const ENDS = 'and must start and end with an alphanumeric character';
const RULES: Readonly<Record<string, string>> = {
  [LABEL]: `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', ${ENDS} (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`,
  [SUBDOMAIN]: `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', ${ENDS} (e.g. 'example.com', regex used for validation is '${SUBDOMAIN}')`,
  [NAME_PART]: `must consist of alphanumeric characters, '-', '_' or '.', ${ENDS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${NAME_PART}')`,
  [LABEL_VALUE]: `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', ${ENDS} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '${LABEL_VALUE}')`,
};

/** The maximum size of all annotations of an object together, in bytes. */
const ANNOTATIONS_LIMIT = 256 * 1024;

function grammarFaults(text: string, grammar: string, limit: number, unit = 'bytes'): string[] {
  const tooLong = text.length > limit ? [`must be no more than ${limit} ${unit}`] : [];
  return new RegExp(`^(?:${grammar})$`).test(text) ? tooLong : [...tooLong, RULES[grammar] ?? ''];
}

/** Returns the faults of a name, in the words of the server. */
function nameFaults(name: string, naming: Kind['naming']): string[] {
  if (naming === 'label')
    return name.includes('.')
      ? ['must not contain dots']
      : grammarFaults(name, LABEL, 63, 'characters');
  if (naming === 'subdomain') return grammarFaults(name, SUBDOMAIN, 253, 'characters');
  if (name === '.' || name === '..') return [`may not be '${name}'`];
  return ['/', '%']
    .filter((sign) => name.includes(sign))
    .map((sign) => `may not contain '${sign}'`);
}

/** Returns the faults of a key such as `refit.dev/step`, which consists of an optional DNS prefix and a name. */
export function qualifiedNameFaults(key: string): string[] {
  const parts = key.split('/');
  const [name = '', prefix] = parts.toReversed();
  if (parts.length > 2) {
    const rest = `with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`;
    return [`a valid label key ${RULES[NAME_PART]} ${rest}`];
  }
  const faults = prefix === '' ? ['prefix part must be non-empty'] : [];
  if (prefix)
    faults.push(...nameFaults(prefix, 'subdomain').map((fault) => `prefix part ${fault}`));
  if (name === '') faults.push('name part must be non-empty');
  return [...faults, ...grammarFaults(name, NAME_PART, 63).map((fault) => `name part ${fault}`)];
}

/** Returns the faults of the value of a label or of a taint. */
export const labelValueFaults = (value: string): string[] => grammarFaults(value, LABEL_VALUE, 63);

/** Returns all faults in the metadata of an object that is to be created. */
export function validateMetadata({ metadata }: ApiObject, kind: Kind): Cause[] {
  const { name, generateName = '' } = metadata;
  const causes: Cause[] = [];
  if (name === '') causes.push(cause.required('metadata.name', 'name or generateName is required'));
  else
    causes.push(
      ...nameFaults(name, kind.naming).map((fault) => cause.invalid('metadata.name', name, fault)),
    );
  if (generateName !== '') {
    // The server adds characters that are a valid end of a name. So the prefix may end with a character such as `-`.
    const faults = nameFaults(`${generateName}a`, kind.naming);
    causes.push(
      ...faults.map((fault) => cause.invalid('metadata.generateName', generateName, fault)),
    );
  }
  return [...causes, ...validateMaps(metadata, kind)];
}

const STANDARD_FINALIZERS = ['kubernetes', 'orphan', 'foregroundDeletion'];

function validateMaps(
  { labels = {}, annotations = {}, ownerReferences, finalizers = [] }: Metadata,
  kind: Kind,
): Cause[] {
  const causes: Cause[] = [];
  const add = (field: string, value: string, faults: readonly string[]): void => {
    causes.push(...faults.map((fault) => cause.invalid(`metadata.${field}`, value, fault)));
  };
  for (const [key, value] of Object.entries(labels)) {
    add('labels', key, qualifiedNameFaults(key));
    add('labels', value, labelValueFaults(value));
  }
  for (const key of Object.keys(annotations))
    add('annotations', key, qualifiedNameFaults(key.toLowerCase()));
  const size = Object.entries(annotations).reduce(
    (sum, pair) => sum + Buffer.byteLength(pair.join('')),
    0,
  );
  if (size > ANNOTATIONS_LIMIT)
    causes.push(cause.tooLong('metadata.annotations', ANNOTATIONS_LIMIT));
  finalizers.forEach((finalizer, index) => {
    add('finalizers', finalizer, qualifiedNameFaults(finalizer));
    // Only kinds of the core group require that a finalizer without a prefix is a standard finalizer.
    const foreign =
      kind.builtin &&
      kind.group === '' &&
      !finalizer.includes('/') &&
      !STANDARD_FINALIZERS.includes(finalizer);
    const rule = 'name is neither a standard finalizer name nor is it fully qualified';
    if (foreign) add(`finalizers[${index}]`, finalizer, [rule]);
  });
  return [...causes, ...validateOwners(ownerReferences ?? [])];
}

function validateOwners(owners: NonNullable<Metadata['ownerReferences']>): Cause[] {
  const at = 'metadata.ownerReferences';
  const causes = owners.flatMap((owner) =>
    (['kind', 'name', 'uid'] as const)
      .filter((field) => owner[field] === '')
      .map((field) => cause.invalid(`${at}.${field}`, '', 'must not be empty')),
  );
  const [first, second] = owners.filter(({ controller }) => controller === true);
  if (!first || !second) return causes;
  const both = `${first.kind}/${first.name} and ${second.kind}/${second.name}`;
  const rule = `Only one reference can have Controller set to true. Found "true" in references for ${both}`;
  return [...causes, cause.invalid(at, owners, rule)];
}

/**
 * Copies from the stored object the fields that an update may omit: uid, times, and the fields of a deletion that has
 * begun.
 */
export function keepSystemMetadata(next: Metadata, old: Metadata): void {
  if (old.uid !== undefined) next.uid ??= old.uid;
  if (old.creationTimestamp !== undefined) next.creationTimestamp = old.creationTimestamp;
  if (old.deletionTimestamp !== undefined) next.deletionTimestamp = old.deletionTimestamp;
  if (old.deletionGracePeriodSeconds !== undefined)
    next.deletionGracePeriodSeconds ??= old.deletionGracePeriodSeconds;
  if (old.generation === undefined) delete next.generation;
  else next.generation = old.generation;
}

const IMMUTABLE = ['deletionGracePeriodSeconds', 'namespace', 'uid', 'deletionTimestamp'] as const;

/** Returns the faults of an update of the metadata. */
export function validateMetadataUpdate(
  { metadata: next }: ApiObject,
  { metadata: old }: ApiObject,
  kind: Kind,
): Cause[] {
  const causes = IMMUTABLE.filter((field) => next[field] !== old[field]).map((field) =>
    cause.invalid(`metadata.${field}`, next[field], 'field is immutable'),
  );
  const added = (next.finalizers ?? []).filter((finalizer) => !old.finalizers?.includes(finalizer));
  if (old.deletionTimestamp !== undefined && added.length > 0) {
    const list = added.map((finalizer) => JSON.stringify(finalizer)).join(', ');
    const rule =
      'no new finalizers can be added if the object is being deleted, found new finalizers';
    causes.push(cause.forbidden('metadata.finalizers', `${rule} []string{${list}}`));
  }
  return [...causes, ...validateMaps(next, kind)];
}

/**
 * Sets the generation. A new object has generation 1. An update increases the generation if it changes what `part`
 * returns.
 */
export function bumpGeneration(
  next: ApiObject,
  old: ApiObject | undefined,
  part: (object: ApiObject) => unknown,
): void {
  const changed = old === undefined || !isDeepStrictEqual(part(next), part(old));
  next.metadata.generation = (old?.metadata.generation ?? 0) + (changed ? 1 : 0);
}
