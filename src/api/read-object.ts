/** Reads objects of custom kinds from YAML or JSON. Each problem names its field. */
import { z } from 'zod';
import { itemsOf } from '../kube/list-items.ts';
import { apiVersionOf, type KubeObject } from '../kube/resources.ts';
import { describeValue, listIssues } from '../util/describe-issue.ts';
import { failing } from '../util/errors.ts';
import { isRecord } from '../util/json.ts';
import { nearest } from '../util/nearest.ts';
import { parseYaml } from '../util/yaml.ts';
import { type CustomKind, nameOfNamespace, nameOfObject } from './crd.ts';
import { withoutInvalid } from './without-invalid.ts';

export interface ReadObject {
  /**
   * The text that identifies the object in messages: the file, the number of the document if the file has several, and
   * the position of the object in a List.
   */
  readonly place: string;
  readonly kind: CustomKind;
  /** The object as the user wrote it, without default values. */
  readonly object: KubeObject;
}

export interface PartOfObject extends ReadObject {
  /** The paths of the invalid fields, which are missing from `object`. */
  readonly removed: readonly string[];
}

export interface ReadObjects {
  readonly objects: readonly ReadObject[];
  /** The problems that were found. Each text names the object and the field. */
  readonly problems: readonly string[];
  /** The valid parts of the objects that have a problem. */
  readonly parts: readonly PartOfObject[];
  /** Texts that name each object of another kind and its position in the files, such as the Secret that a Plan needs. */
  readonly others: readonly string[];
}

/**
 * Returns the objects of `kinds` in `text`, which may have several documents. Throws REFIT_FILE if the text is not YAML, or is
 * empty.
 */
export function readObjects(
  text: string,
  file: string,
  kinds: readonly [CustomKind, ...CustomKind[]],
): ReadObjects {
  const fail = failing('REFIT_FILE', `${file}: `, {
    hint: '`kubectl explain` shows every field of a kind',
  });
  const written = parseYaml(text, failing('REFIT_FILE', `${file}: is not YAML: `));
  const isSingle = written.filter((document) => document !== null).length <= 1;
  const documents = written.flatMap((document, index) => {
    const place = isSingle ? file : `${file}: document ${index + 1}`;
    return itemsOf(document).map(({ value, path, fault }) => ({
      value: withoutEmptyNamespace(value),
      place: path === undefined ? place : `${place}: ${path}`,
      fault,
    }));
  });
  const objects: ReadObject[] = [];
  const parts: PartOfObject[] = [];
  const problems: string[] = [];
  const others: string[] = [];
  const names = new Set(kinds.map(({ resource }) => resource.kind));
  const filled = documents.filter(({ value }) => value !== null);
  if (filled.length === 0)
    return fail(`is empty or has only comments, expected ${kinds.map(nameOf).join(' or ')}`);
  for (const { value, place, fault } of filled) {
    if (fault !== undefined) {
      problems.push(`${place}: ${fault}`);
      continue;
    }
    const kind = kinds.find(({ resource }) => isOf(resource, value));
    const found = `${place}: holds ${titleOf(value)}`;
    if (kind) {
      const schema = kind.schema.extend(HEADER);
      const { error } = schema.safeParse(value, { reportInput: true });
      const issues = error ? listIssues(error, `the ${kind.resource.kind}`) : [];
      problems.push(...issues.map((issue) => `${place}: ${issue}`));
      if (!error) objects.push({ place, kind, object: value as KubeObject });
      const part = error && withoutInvalid(schema, value);
      if (part)
        parts.push({ place, kind, object: part.value as KubeObject, removed: part.removed });
      continue;
    }
    const meant = kinds.find((each) => hasMisnomer(each, value));
    const misspelt = misspeltKind(kinds, value);
    if (meant) problems.push(`${place}: ${misnomerProblem(meant)}`);
    else if (misspelt !== undefined)
      problems.push(`${found}, which is no kind: write ${nameOf(misspelt)}`);
    else if (isOfOtherKind(value, names)) others.push(found);
    else problems.push(`${found}, expected ${kinds.map(nameOf).join(' or ')}`);
  }
  return { objects, parts, problems, others };
}

/** Templates often write an empty namespace. kubectl treats it like a missing namespace. */
function withoutEmptyNamespace(value: unknown): unknown {
  if (!isRecord(value) || !isRecord(value['metadata'])) return value;
  const { namespace, ...metadata } = value['metadata'];
  return namespace === '' || namespace === null ? { ...value, metadata } : value;
}

function isOf(resource: CustomKind['resource'], value: unknown): boolean {
  const { kind, apiVersion } = isRecord(value) ? value : {};
  return kind === resource.kind && apiVersion === apiVersionOf(resource);
}

function hasMisnomer({ resource, misnomer }: CustomKind, value: unknown): boolean {
  const { kind, apiVersion } = isRecord(value) ? value : {};
  return misnomer !== undefined && kind === misnomer && apiVersion === apiVersionOf(resource);
}

function misnomerProblem({ resource, misnomer }: CustomKind): string {
  return `kind: "${misnomer}" is not a kind of ${apiVersionOf(resource)}; use ${resource.kind}`;
}

/**
 * Returns the kind of the same group that the user probably means; undefined if no kind of the group has a similar
 * name.
 */
function misspeltKind(kinds: readonly CustomKind[], value: unknown): CustomKind | undefined {
  const { kind, apiVersion } = isRecord(value) ? value : {};
  if (typeof kind !== 'string' || typeof apiVersion !== 'string') return undefined;
  const group = apiVersion.split('/')[0];
  const ofGroup = kinds.filter(({ resource }) => resource.group === group);
  const meant = nearest(
    kind,
    ofGroup.map(({ resource }) => resource.kind),
  );
  return ofGroup.find(({ resource }) => resource.kind === meant && resource.kind !== kind);
}

/**
 * Returns true if the kind of the object is not one of `ours`. Returns false for one of these kinds with an unknown
 * version, because that is a mistake of the user.
 */
function isOfOtherKind(value: unknown, ours: ReadonlySet<string>): boolean {
  const { kind, apiVersion } = isRecord(value) ? value : {};
  return typeof kind === 'string' && typeof apiVersion === 'string' && !ours.has(kind);
}

/** Returns the kind with its article, such as `an UpgradePolicy of upgrade.refit.dev/v1alpha1`. */
export function nameOf({ resource }: CustomKind): string {
  return withArticle(`${resource.kind} of ${apiVersionOf(resource)}`);
}

function withArticle(noun: string): string {
  // English says "an UpgradePolicy", but "a User".
  const isVowel = /^[AEIO]|^U(?!ser)/i.test(noun);
  return `${isVowel ? 'an' : 'a'} ${noun}`;
}

/** Refuses unknown fields, as `kubectl apply` does. If a misspelt `sha256` were ignored, nobody would verify the file. */
const HEADER = {
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({
    name: nameOfObject('The name.'),
    namespace: nameOfNamespace('The namespace.').exactOptional(),
  }),
};

/** Says what a document holds, such as `a Plan of upgrade.cattle.io/v1`. */
export function titleOf(value: unknown): string {
  if (!isRecord(value)) return describeValue(value);
  const { kind, apiVersion } = value;
  return typeof kind === 'string' && typeof apiVersion === 'string'
    ? withArticle(`${kind} of ${apiVersion}`)
    : 'an object without kind and apiVersion';
}
