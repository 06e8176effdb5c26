/** Implements `refit validate`: checks a file with a Plan or an UpgradePolicy, without a cluster. */
import { readFile } from 'node:fs/promises';
import { type Plan, planKind } from '../api/autopilot/plan.ts';
import { readObject } from '../api/read-object.ts';
import { type UpgradePolicy, upgradePolicyKind } from '../api/refit/upgrade-policy.ts';
import { problemsOf } from '../dialects/autopilot/problems.ts';
import type { Reason } from '../engine/model/reasons.ts';
import { readPolicy } from '../engine/policy/read-policy.ts';
import { EXIT, messageOf, RefitError } from '../util/errors.ts';

/** Resolves with the exit code; rejects with REFIT_FILE and every wrong field, what was found and what would be right. */
export async function validate(path: string, write: (text: string) => void): Promise<number> {
  const { kind, object } = readObject(await readText(path), path, [planKind, upgradePolicyKind]);
  const { title, problems, page } =
    kind === planKind ? judgePlan(object as Plan) : judgePolicy(object as UpgradePolicy);
  if (problems.length > 0) {
    const message = problems.map((problem) => problem.message).join('; ');
    throw new RefitError('REFIT_FILE', `${path}: ${message}`, { hint: `correct that; ${page} says more` });
  }
  write(`${path}: ${title}\n`);
  return EXIT.ok;
}

interface Judgement {
  /** Printed if there are no problems. */
  readonly title: string;
  readonly problems: readonly Reason[];
  /** Documentation to read. */
  readonly page: string;
}

function judgePlan(plan: Plan): Judgement {
  const commands = plan.spec.commands.length;
  const title = `Plan ${plan.metadata.name} (${plan.spec.id}) with ${commands} command${commands === 1 ? '' : 's'}`;
  return { title: `${title} can be carried out`, problems: problemsOf(plan), page: 'docs/guides/k0s.md' };
}

function judgePolicy(policy: UpgradePolicy): Judgement {
  const title = `UpgradePolicy ${policy.metadata.name} can be read`;
  return { title, problems: readPolicy(policy).problems, page: 'docs/guides/policy.md' };
}

/** Rejects with REFIT_FILE. */
export async function readText(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((error: unknown) => {
    const hint = 'check the path';
    throw new RefitError('REFIT_FILE', `cannot read ${path}: ${messageOf(error)}`, { cause: error, hint });
  });
}
