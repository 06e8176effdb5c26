/** Implements `refit validate`: checks files of any dialect, without a cluster. */
import { nameOf, type ReadObject, readObjects } from '../api/read-object.ts';
import { type UpgradePolicy, upgradePolicySpecSchema } from '../api/refit/upgrade-policy.ts';
import { upgradePolicyKind } from '../api/schemas.ts';
import { isAboutRemoved } from '../api/without-invalid.ts';
import { readPolicy } from '../engine/policy/read-policy.ts';
import type { KubeObject } from '../kube/resources.ts';
import { failing, RefitError } from '../util/errors.ts';
import { parseYaml } from '../util/yaml.ts';
import type { DialectModule } from './contract/dialect-module.ts';
import type { DocumentFile, Judgement, ObjectFile } from './contract/file-kind.ts';
import { type InputFile, readInputs } from './input-files.ts';
import { placeholdersInUrls, withPlaceholder } from './placeholders.ts';
import { type PlacedPlan, warningsAmong, warningsUnderPolicies } from './plans-under-policies.ts';
import { type PolicyDialect, policyWarnings } from './policy-warnings.ts';

/** What `refit validate` needs to know about a dialect. */
export type ValidatedDialect = Pick<DialectModule, 'files' | 'policyEffects' | 'selfDrain'> & {
  readonly name: string;
};

/** What can be in the files, from all dialects. */
interface Accepted {
  readonly objects: readonly [ObjectFile, ...ObjectFile[]];
  readonly documents: readonly DocumentFile[];
  /** The policies, which belong to no dialect. */
  readonly policies: ObjectFile;
  /** The name of the dialect to which each kind of objects belongs. */
  readonly dialects: ReadonlyMap<ObjectFile, string>;
  /** Names the kinds of objects, for messages. */
  readonly expected: string;
}

/**
 * Prints one line for each valid object, then rejects with REFIT_FILE if any object is wrong. The
 * error lists every wrong field, what was found, and what would be right.
 */
export async function validate(
  paths: readonly string[],
  write: (text: string) => void,
  modules: readonly ValidatedDialect[],
): Promise<void> {
  const accepted = await acceptedBy(modules);
  const wrong: string[] = [];
  const earlier = new Map<ObjectFile, KubeObject[]>();
  const plans: PlacedPlan[] = [];
  const policies: UpgradePolicy[] = [];
  let judged = 0;
  const files = await readInputs(paths);
  for (const file of files) {
    const judge = (): FileJudgement => judgeFile(file, accepted);
    // A file that cannot be read must not hide the problems of the other files.
    const { judgements, problems, others } = files.length > 1 ? judgeable(judge) : judge();
    judged += judgements.length;
    for (const line of others) write(`${line}, which is not checked\n`);
    wrong.push(...problems);
    for (const { place, title, problems: own, warnings: found, judged: of } of judgements) {
      const warnings = [...found, ...(of === undefined ? [] : conflictsOf(of, earlier))];
      if (own.length > 0) {
        wrong.push(...own.map((problem) => `${place}: ${problem}`));
        continue;
      }
      for (const line of [title, ...warnings.map((warning) => `warning: ${warning}`)])
        write(`${place}: ${line}\n`);
      if (of === undefined) continue;
      const dialect = accepted.dialects.get(of.file);
      if (of.file === accepted.policies) policies.push(of.object as UpgradePolicy);
      else if (dialect !== undefined) plans.push({ ...of, place, dialect });
    }
  }
  // A policy may come after the plans that it covers, also in another file. So may a plan for which another plan waits.
  for (const line of [...warningsAmong(plans), ...warningsUnderPolicies(plans, policies)])
    write(`${line}\n`);
  if (judged === 0 && wrong.length === 0)
    wrong.push(`${paths.join(', ')}: found nothing to check, expected ${accepted.expected}`);
  if (wrong.length > 0)
    throw new RefitError('REFIT_FILE', '', {
      problems: wrong.map(withPlaceholder),
      hint: 'correct the fields; `kubectl explain` shows every field of a kind',
    });
}

/** Collects what the dialects accept. Policies belong to all dialects. */
async function acceptedBy(modules: readonly ValidatedDialect[]): Promise<Accepted> {
  const files = await Promise.all(
    modules.map(async ({ name, files: ofDialect }) =>
      (await ofDialect()).map((each) => ({ each, name })),
    ),
  );
  const dialects: readonly PolicyDialect[] = modules;
  const kinds = files.flat().map(({ each }) => each);
  const objects = kinds.filter((each) => each.form === 'object');
  const policies: ObjectFile = {
    form: 'object',
    holds: 'settings',
    kind: upgradePolicyKind,
    judge: (object) => judgePolicy(object as UpgradePolicy, dialects),
    conflicts: () => [],
  };
  const plans = objects.filter(({ holds }) => holds === 'plans');
  const settings = objects.filter(({ holds }) => holds === 'settings');
  const [first = policies, ...others] = [...plans, policies, ...settings];
  return {
    objects: [first, ...others],
    documents: kinds.filter((each) => each.form === 'document'),
    policies,
    dialects: new Map(
      files.flat().flatMap(({ each, name }) => (each.form === 'object' ? [[each, name]] : [])),
    ),
    expected: [first, ...others].map(({ kind }) => nameOf(kind)).join(' or '),
  };
}

/** An object with the kind of files that it belongs to. */
interface Judged {
  readonly file: ObjectFile;
  readonly object: KubeObject;
}

/** Compares the object with the earlier objects of its kind, and adds it to them. */
function conflictsOf(
  { file, object }: Judged,
  earlier: Map<ObjectFile, KubeObject[]>,
): readonly string[] {
  const before = earlier.getOrInsertComputed(file, () => []);
  const found = file.conflicts(object, before);
  before.push(object);
  return found;
}

interface PlacedJudgement extends Judgement {
  readonly place: string;
  /** The object; undefined for a file that has no objects. */
  readonly judged: Judged | undefined;
}

interface FileJudgement {
  readonly judgements: readonly PlacedJudgement[];
  readonly problems: readonly string[];
  readonly others: readonly string[];
}

/** Returns what was judged; if the file has no objects that can be read, returns why. */
function judgeable(judge: () => FileJudgement): FileJudgement {
  try {
    return judge();
  } catch (error) {
    if (!(error instanceof RefitError) || error.code !== 'REFIT_FILE') throw error;
    return { judgements: [], problems: error.problems, others: [] };
  }
}

function judgeFile({ path, text, isFromFolder }: InputFile, accepted: Accepted): FileJudgement {
  const fail = failing('REFIT_FILE', `${path}: is not YAML: `);
  const written = parseYaml(text, fail);
  const document = accepted.documents.find((each) => written.some((one) => each.isMeant(one)));
  if (document !== undefined) {
    const judgement = { ...document.judge(text, path), place: path, judged: undefined };
    return { judgements: [judgement], problems: [], others: [] };
  }
  const [firstKind, ...otherKinds] = accepted.objects;
  const kinds = [firstKind.kind, ...otherKinds.map(({ kind }) => kind)] as const;
  const fileOf = ({ kind }: ReadObject): ObjectFile =>
    accepted.objects.find((each) => each.kind === kind) ?? firstKind;
  const { objects, parts, problems: shapes, others } = readObjects(text, path, kinds);
  const seen = new Set<string>();
  const judgements = objects.map((each) => {
    const file = fileOf(each);
    const judgement = file.judge(each.object);
    const warnings = [
      ...namespaceWarnings(each),
      ...judgement.warnings,
      ...placeholdersInUrls(each.object),
      ...repetition(each, seen),
    ];
    return { ...judgement, warnings, place: each.place, judged: { file, object: each.object } };
  });
  const rules = parts.flatMap((part) =>
    fileOf(part)
      .judge(part.object)
      .problems.filter((problem) => !isAboutRemoved(problem, part.removed))
      .map((problem) => `${part.place}: ${problem}`),
  );
  const problems = [...shapes, ...rules];
  const isMeant = isFromFolder || objects.length + problems.length > 0;
  return isMeant
    ? { judgements, problems, others }
    : {
        judgements,
        problems: others.map((found) => `${found}, expected ${accepted.expected}`),
        others: [],
      };
}

/**
 * Returns a warning if `seen` already contains the same object, and adds the object to `seen`. kubectl would apply both
 * objects, and the API server would keep the second.
 */
function repetition({ kind, object }: ReadObject, seen: Set<string>): string[] {
  const { name, namespace } = object.metadata;
  const { group, kind: kindName } = kind.resource;
  const key = JSON.stringify([group, kindName, namespace, name]);
  const isRepeated = seen.has(key);
  seen.add(key);
  return isRepeated
    ? [`the file has ${kindName} ${name} twice: only the last one stays after kubectl apply`]
    : [];
}

/**
 * Returns a warning if an object of a cluster-scoped kind has a namespace, as in the examples of k0s. An API server
 * ignores this namespace.
 */
function namespaceWarnings({ kind, object }: ReadObject): string[] {
  const { namespace } = object.metadata;
  if (kind.resource.namespaced || namespace === undefined) return [];
  return [
    `metadata.namespace: "${namespace}" is not used, because the kind has no namespaces; remove it`,
  ];
}

function judgePolicy(policy: UpgradePolicy, dialects: readonly PolicyDialect[]): Judgement {
  const title = `UpgradePolicy ${policy.metadata.name} is valid`;
  const problems = readPolicy(policy).problems.map(({ message }) => message);
  // The fields of an invalid policy may have any type, so there are no warnings about it.
  const checked = upgradePolicySpecSchema.safeParse(policy.spec);
  const warnings = checked.success ? policyWarnings(checked.data, dialects) : [];
  return { title, problems, warnings };
}
