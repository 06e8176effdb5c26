/** Reads objects of custom kinds from YAML or JSON; each problem names its field. */
import { z } from 'zod';
import { apiVersionOf, type KubeObject } from '../kube/resources.ts';
import { describeValue, listIssues } from '../util/describe-issue.ts';
import { failing } from '../util/errors.ts';
import { isRecord } from '../util/json.ts';
import { parseYaml } from '../util/yaml.ts';
import type { CustomKind } from './crd.ts';

export interface ReadObject {
  /** Names the object in a message: the file, and the document where the file has several. */
  readonly place: string;
  readonly kind: CustomKind;
  /** As it is written, without defaults. */
  readonly object: KubeObject;
}

export interface ReadObjects {
  readonly objects: readonly ReadObject[];
  /** Each names the place and the field. */
  readonly problems: readonly string[];
  /** Objects of other kinds, such as the Secret that a Plan needs; each names the place. */
  readonly others: readonly string[];
}

/** The objects of `kinds` in `text`, which may have several documents. Throws REFIT_FILE if it is not YAML, or empty. */
export function readObjects(
  text: string,
  file: string,
  kinds: readonly [CustomKind, ...CustomKind[]],
): ReadObjects {
  const fail = failing('REFIT_FILE', `${file}: `, {
    hint: 'docs/reference/crds.md has every field',
  });
  const written = parseYaml(text, (why) => fail(`is not YAML: ${why}`));
  const documents = written.map((value, index) => ({
    value,
    place: written.length === 1 ? file : `${file}: document ${index + 1}`,
  }));
  const objects: ReadObject[] = [];
  const problems: string[] = [];
  const others: string[] = [];
  const names = new Set(kinds.map(({ resource }) => resource.kind));
  const filled = documents.filter(({ value }) => value !== null);
  if (filled.length === 0) return fail(`is empty, expected one ${[...names].join(' or ')}`);
  for (const { value, place } of filled) {
    const kind = kinds.find(({ resource }) => isOf(resource, value));
    const found = `${place}: holds ${titleOf(value)}`;
    if (kind) {
      const { error } = kind.schema.extend(HEADER).safeParse(value, { reportInput: true });
      const issues = error ? listIssues(error, `the ${kind.resource.kind}`) : [];
      problems.push(...issues.map((issue) => `${place}: ${issue}`));
      if (!error) objects.push({ place, kind, object: value as KubeObject });
    } else if (isOfOtherKind(value, names)) others.push(found);
    else problems.push(`${found}, expected ${kinds.map(nameOf).join(' or ')}`);
  }
  return { objects, problems, others };
}

function isOf(resource: CustomKind['resource'], value: unknown): boolean {
  const { kind, apiVersion } = isRecord(value) ? value : {};
  return kind === resource.kind && apiVersion === apiVersionOf(resource);
}

/** A kind of ours in an unknown version is a mistake, and no object beside it. */
function isOfOtherKind(value: unknown, ours: ReadonlySet<string>): boolean {
  const { kind, apiVersion } = isRecord(value) ? value : {};
  return typeof kind === 'string' && typeof apiVersion === 'string' && !ours.has(kind);
}

/** With its article: `an UpgradePolicy of upgrade.refit.dev/v1alpha1`. */
export function nameOf({ resource }: CustomKind): string {
  return withArticle(`${resource.kind} of ${apiVersionOf(resource)}`);
}

function withArticle(noun: string): string {
  // It is "an UpgradePolicy", but "a User".
  const isVowel = /^[AEIO]|^U(?!ser)/i.test(noun);
  return `${isVowel ? 'an' : 'a'} ${noun}`;
}

/** As strict as `kubectl apply`, which refuses misspelt fields too: a lost `sha256` would be a file nobody verifies. */
const HEADER = {
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
};

function titleOf(value: unknown): string {
  if (!isRecord(value)) return describeValue(value);
  const { kind, apiVersion } = value;
  return typeof kind === 'string' && typeof apiVersion === 'string'
    ? withArticle(`${kind} of ${apiVersion}`)
    : 'an object without kind and apiVersion';
}
