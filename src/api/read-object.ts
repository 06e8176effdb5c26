/** Reads an object of a custom kind from YAML or JSON; an error is one line with the field and the problem. */
import { z } from 'zod';
import { apiVersionOf, type KubeObject } from '../kube/resources.ts';
import { describeIssues, describeValue } from '../util/describe-issue.ts';
import { failing } from '../util/errors.ts';
import { isRecord } from '../util/json.ts';
import { parseYaml } from '../util/yaml.ts';
import type { CustomKind } from './crd.ts';

/** The one object of `kinds` in `text`, as written, without defaults. REFIT_FILE names `file` and the field. */
export function readObject(
  text: string,
  file: string,
  kinds: readonly [CustomKind, ...CustomKind[]],
) {
  const fail = failing('REFIT_FILE', `${file}: `, {
    hint: 'docs/reference/crds.md has every field',
  });
  const wanted = [...new Set(kinds.map(({ resource }) => resource.kind))].join(' or ');
  const [found, second] = parseYaml(text, (why) => fail(`is not YAML: ${why}`)).filter(
    (value) => value !== null,
  );
  if (found === undefined) return fail(`is empty, expected one ${wanted}`);
  if (second !== undefined)
    return fail(`holds ${titleOf(found)} and ${titleOf(second)}, expected one ${wanted} only`);
  const header = isRecord(found) ? found : {};
  const kind = kinds.find(
    ({ resource }) =>
      header['kind'] === resource.kind && header['apiVersion'] === apiVersionOf(resource),
  );
  if (!kind) return fail(`holds ${titleOf(found)}, expected ${kinds.map(nameOf).join(' or ')}`);
  const { error } = kind.schema.extend(HEADER).safeParse(found, { reportInput: true });
  return error
    ? fail(describeIssues(error, `the ${kind.resource.kind}`))
    : { kind, object: found as KubeObject };
}

function nameOf({ resource }: CustomKind): string {
  const { kind } = resource;
  return `${/^[AEIOU]/.test(kind) ? 'an' : 'a'} ${kind} of ${apiVersionOf(resource)}`;
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
    ? `a ${kind} of ${apiVersion}`
    : 'an object without kind and apiVersion';
}
