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

/** Bytes that all annotations of an object may have together. */
const ANNOTATIONS_LIMIT = 256 * 1024;

function grammarFaults(text: string, grammar: string, limit: number, unit = 'bytes'): string[] {
  const tooLong = text.length > limit ? [`must be no more than ${limit} ${unit}`] : [];
  return new RegExp(`^(?:${grammar})$`).test(text) ? tooLong : [...tooLong, RULES[grammar] ?? ''];
}

/** What is wrong with a name, in the server's words. */
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

/** Faults of a key such as `refit.dev/step`: an optional DNS prefix and a name. */
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

/** What is wrong with the value of a label, or of a taint. */
export const labelValueFaults = (value: string): string[] => grammarFaults(value, LABEL_VALUE, 63);

/** Everything that is wrong with the metadata of an object to be created. */
export function validateMetadata({ metadata }: ApiObject, kind: Kind): Cause[] {
  const { name, generateName = '' } = metadata;
  const causes: Cause[] = [];
  if (name === '') causes.push(cause.required('metadata.name', 'name or generateName is required'));
  else
    causes.push(
      ...nameFaults(name, kind.naming).map((fault) => cause.invalid('metadata.name', name, fault)),
    );
  if (generateName !== '') {
    // The added characters end the name well, whatever the prefix ends with.
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
    // Only the core group insists that names without a prefix are its own.
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

/** Fills what an update may leave out with what the object has: uid, times, and a deletion once it has begun. */
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

/** What an update of the metadata may not do. */
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

/** A new object is its first generation; later ones differ in what `part` takes of the object. */
export function bumpGeneration(
  next: ApiObject,
  old: ApiObject | undefined,
  part: (object: ApiObject) => unknown,
): void {
  const changed = old === undefined || !isDeepStrictEqual(part(next), part(old));
  next.metadata.generation = (old?.metadata.generation ?? 0) + (changed ? 1 : 0);
}
