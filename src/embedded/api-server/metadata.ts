/** Owns the rules of object metadata: names, labels, finalizers, and what no update may change. */
import { isDeepStrictEqual } from 'node:util';
import { type Cause, cause } from './failure.ts';
import type { Kind } from './kind.ts';
import type { ApiObject, Metadata } from './store.ts';

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = String.raw`${LABEL}(\.${LABEL})*`;
const NAME_PART = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const LABEL_VALUE = `(${NAME_PART})?`;

const SUBDOMAIN_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and " +
  `end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SUBDOMAIN}')`;
const LABEL_RULE =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with " +
  `an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`;
const NAME_PART_RULE =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " +
  `character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${NAME_PART}')`;
const LABEL_VALUE_RULE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and " +
  `end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '${LABEL_VALUE}')`;

/** Bytes that all annotations of an object may have together. */
const ANNOTATIONS_LIMIT = 256 * 1024;

const whole = (pattern: string): RegExp => new RegExp(`^(?:${pattern})$`);
const IS_LABEL = whole(LABEL);
const IS_SUBDOMAIN = whole(SUBDOMAIN);
const IS_NAME_PART = whole(NAME_PART);

const tooMany = (limit: number): string => `must be no more than ${limit} bytes`;

/** What is wrong with a name, in the server's words. */
function nameFaults(name: string, naming: Kind['naming']): string[] {
  if (naming === 'label') return grammarFaults(name, IS_LABEL, 63, LABEL_RULE);
  if (naming === 'subdomain') return grammarFaults(name, IS_SUBDOMAIN, 253, SUBDOMAIN_RULE);
  if (name === '.' || name === '..') return [`may not be '${name}'`];
  return ['/', '%'].filter((sign) => name.includes(sign)).map((sign) => `may not contain '${sign}'`);
}

function grammarFaults(text: string, grammar: RegExp, limit: number, rule: string): string[] {
  return [...(text.length > limit ? [tooMany(limit)] : []), ...(grammar.test(text) ? [] : [rule])];
}

/** Faults of a key such as `refit.dev/step`: an optional DNS prefix and a name. */
export function qualifiedNameFaults(key: string): string[] {
  const parts = key.split('/');
  if (parts.length > 2) {
    return [
      `a qualified name ${NAME_PART_RULE.slice('name part '.length, -1)} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const [name = '', prefix] = parts.toReversed();
  const faults: string[] = [];
  if (prefix === '') faults.push('prefix part must be non-empty');
  else if (prefix !== undefined) faults.push(...nameFaults(prefix, 'subdomain').map((fault) => `prefix part ${fault}`));
  if (name === '') faults.push('name part must be non-empty');
  else if (name.length > 63) faults.push(`name part ${tooMany(63)}`);
  return IS_NAME_PART.test(name) ? faults : [...faults, NAME_PART_RULE];
}

export function labelValueFaults(value: string): string[] {
  return grammarFaults(value, whole(LABEL_VALUE), 63, LABEL_VALUE_RULE);
}

/** Everything that is wrong with the metadata of an object to be created. */
export function validateMetadata({ metadata }: ApiObject, naming: Kind['naming']): Cause[] {
  const causes: Cause[] = [];
  const generate = metadata.generateName ?? '';
  if (generate !== '') {
    // The suffix always ends the name well, so a generated name may end with a dash here.
    const faults = nameFaults(naming === 'path' ? generate : `${generate}a`, naming);
    causes.push(...faults.map((fault) => cause.invalid('metadata.generateName', generate, fault)));
  }
  if (metadata.name === '') causes.push(cause.required('metadata.name', 'name or generateName is required'));
  else {
    const faults = nameFaults(metadata.name, naming);
    causes.push(...faults.map((fault) => cause.invalid('metadata.name', metadata.name, fault)));
  }
  return [...causes, ...validateMaps(metadata)];
}

function validateMaps({ labels = {}, annotations = {}, ownerReferences = [], finalizers = [] }: Metadata): Cause[] {
  const causes: Cause[] = [];
  for (const [key, value] of Object.entries(labels)) {
    causes.push(...qualifiedNameFaults(key).map((fault) => cause.invalid('metadata.labels', key, fault)));
    causes.push(...labelValueFaults(value).map((fault) => cause.invalid('metadata.labels', value, fault)));
  }
  let size = 0;
  for (const [key, value] of Object.entries(annotations)) {
    const faults = qualifiedNameFaults(key.toLowerCase());
    causes.push(...faults.map((fault) => cause.invalid('metadata.annotations', key, fault)));
    size += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (size > ANNOTATIONS_LIMIT) causes.push(cause.tooLong('metadata.annotations', ANNOTATIONS_LIMIT));
  ownerReferences.forEach((owner, index) => {
    const at = `metadata.ownerReferences[${index}]`;
    for (const field of ['apiVersion', 'kind', 'name', 'uid'] as const) {
      const detail = field === 'apiVersion' ? 'version must not be empty' : `${field} must not be empty`;
      if (owner[field] === '') causes.push(cause.invalid(`${at}.${field}`, '', detail));
    }
  });
  finalizers.forEach((finalizer, index) =>
    causes.push(...validateFinalizer(finalizer, `metadata.finalizers[${index}]`)),
  );
  return causes;
}

const STANDARD_FINALIZERS = ['kubernetes', 'orphan', 'foregroundDeletion'];

function validateFinalizer(finalizer: string, field: string): Cause[] {
  const faults = qualifiedNameFaults(finalizer);
  if (faults.length > 0) return faults.map((fault) => cause.invalid(field, finalizer, fault));
  if (finalizer.includes('/') || STANDARD_FINALIZERS.includes(finalizer)) return [];
  return [cause.invalid(field, finalizer, 'name is neither a standard finalizer name nor is it fully qualified')];
}

/** Fills what an update may leave out with what the object has: uid, times, and a deletion once it has begun. */
export function keepSystemMetadata(next: Metadata, old: Metadata): void {
  if (old.uid !== undefined) next.uid ??= old.uid;
  if (old.creationTimestamp !== undefined) next.creationTimestamp = old.creationTimestamp;
  if (old.deletionTimestamp !== undefined) next.deletionTimestamp = old.deletionTimestamp;
  if (old.deletionGracePeriodSeconds !== undefined) next.deletionGracePeriodSeconds ??= old.deletionGracePeriodSeconds;
}

const IMMUTABLE = ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp'] as const;

/** What an update of the metadata may not do. */
export function validateMetadataUpdate({ metadata: next }: ApiObject, { metadata: old }: ApiObject): Cause[] {
  const causes: Cause[] = [];
  if (next.deletionGracePeriodSeconds !== old.deletionGracePeriodSeconds) {
    causes.push(immutable('deletionGracePeriodSeconds', next.deletionGracePeriodSeconds));
  }
  const added = (next.finalizers ?? []).filter((finalizer) => !old.finalizers?.includes(finalizer));
  if (old.deletionTimestamp !== undefined && added.length > 0) {
    const list = added.map((finalizer) => JSON.stringify(finalizer)).join(', ');
    const why = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`;
    causes.push(cause.forbidden('metadata.finalizers', why));
  }
  for (const field of IMMUTABLE) if (next[field] !== old[field]) causes.push(immutable(field, next[field]));
  return [...causes, ...validateMaps(next)];
}

const immutable = (field: string, value: unknown): Cause =>
  cause.invalid(`metadata.${field}`, value, 'field is immutable');

/** Raises the generation where one of `members` changed. */
export function bumpGeneration(next: ApiObject, old: ApiObject, members: readonly string[]): void {
  const changed = members.some((member) => !isDeepStrictEqual(next[member], old[member]));
  const generation = (old.metadata.generation ?? 0) + (changed ? 1 : 0);
  if (generation === 0) delete next.metadata.generation;
  else next.metadata.generation = generation;
}
