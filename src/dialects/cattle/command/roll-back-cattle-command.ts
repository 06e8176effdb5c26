/** Rolls a Plan of Rancher back: shows the change of the Plan, asks the user, and writes the change. */

import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { awaitedChecks } from '../../../cli/advice/plan-flag.ts';
import { say } from '../../../cli/controls/control-command.ts';
import { dryRunLines } from '../../../cli/controls/dry-run.ts';
import {
  checksOf,
  isWanted,
  type ReasonedFlags,
  refuseOpenPlan,
  runOf,
  writeUnlessChanged,
} from '../../../cli/controls/roll-back.ts';
import { table } from '../../../cli/phrases.ts';
import type { Inspection } from '../../../cli/status/observe.ts';
import type { Session, SessionParts } from '../../../cli/status/status-session.ts';
import { askUserName } from '../../../cli/user-name.ts';
import { ABORT_ANNOTATION, controlKey } from '../../../engine/model/controls.ts';
import {
  ROLLS_BACK_ANNOTATION,
  ROLLS_BACK_REASON_ANNOTATION,
  ROLLS_BACK_TO_ANNOTATION,
} from '../../../engine/model/earlier-versions.ts';
import { qualifiedRunId } from '../../../engine/model/runs.ts';
import { apiVersionOf, nodes } from '../../../kube/resources.ts';
import { RefitError } from '../../../util/errors.ts';
import { counted } from '../../../util/phrases.ts';
import { writeYaml } from '../../../util/yaml.ts';
import { CONTROL_PREFIX } from '../plan/names.ts';
import { type CattleWayBack, cattleWayBack } from './roll-back-cattle-plan.ts';

/** Rolls back the Plan of Rancher that the caller has chosen. */
export async function rollBackCattlePlan(
  session: Session,
  old: Inspection,
  flags: ReasonedFlags,
  parts: SessionParts,
): Promise<void> {
  const { client, abort, loaded } = session;
  const plan = old.plan as CattlePlan;
  const now = parts.clock.now();
  if ((flags.url ?? flags.sha256) !== undefined)
    throw new RefitError(
      'REFIT_USAGE',
      '--url and --sha256 are for k0s Plans: a Plan of Rancher installs with an image, which --image names',
    );
  if (flags.skipNode !== undefined)
    throw new RefitError(
      'REFIT_USAGE',
      '--skip-node is for k0s Plans: for a Plan of Rancher, exclude the node in spec.nodeSelector',
    );
  refuseOpenPlan(old);
  const { history, run } = await runOf(session, old, flags);
  const others = loaded.find(({ dialect }) => dialect.name === old.dialect.name);
  const way = cattleWayBack({
    plan,
    run,
    history,
    nodes: old.world.list(nodes),
    plans: others?.plans() ?? [],
    image: flags.image,
  });
  const by = await askUserName(session);
  const annotations = {
    [keyOf(ROLLS_BACK_ANNOTATION)]: qualifiedRunId(run),
    [keyOf(ROLLS_BACK_TO_ANNOTATION)]: way.version,
    [keyOf(ROLLS_BACK_REASON_ANNOTATION)]: `${by}: ${flags.reason.trim()}`,
    // The abort annotation is removed, because the controller starts no Job for an aborted Plan.
    ...(old.snapshot.plan.controls.abort === undefined
      ? {}
      : { [keyOf(ABORT_ANNOTATION)]: null, [ABORT_ANNOTATION]: null }),
  };
  const { name, namespace } = plan.metadata;
  if (flags.output === 'yaml')
    return parts.output.write(
      writeYaml({
        apiVersion: apiVersionOf(cattlePlans),
        kind: cattlePlans.kind,
        metadata: { name, namespace, annotations },
        spec: way.spec,
      }),
    );
  const named = { dialect: old.dialect.name, name, namespace };
  say(parts, [
    ...shown(old, way),
    ...awaitedChecks(named, checksOf(run, old.policy)),
    ...dryRunLines(flags),
  ]);
  if (flags.dryRun === 'client') return;
  const patched = async (dryRun: boolean) =>
    await writeUnlessChanged(session, old, now, async (resourceVersion) => {
      const patch = { metadata: { resourceVersion, annotations }, spec: way.spec };
      await client.patch(cattlePlans, name, patch, { type: 'merge', dryRun, namespace, abort });
    });
  await patched(true);
  if (flags.dryRun === 'server' || !(await isWanted(flags, parts))) return;
  await patched(false);
  say(parts, ['The Plan goes back. Follow it with: refit status --watch']);
}

function keyOf(key: string): string {
  return controlKey(key, CONTROL_PREFIX);
}

function shown({ plan, snapshot }: Inspection, way: CattleWayBack): string[] {
  const { name, namespace } = plan.metadata;
  const rows = way.moves.map((move) => [
    move.name,
    move.isServer ? 'server' : 'worker',
    move.from,
    move.to,
  ]);
  return [
    `Plan ${namespace}/${name} goes back to ${way.version}, ${counted((plan as CattlePlan).spec?.concurrency ?? 0, 'node')} at a time. Plans of workers go back before the Plan of the servers.`,
    ...table(['NODE', 'ROLE', 'FROM', 'TO'], rows, Number.POSITIVE_INFINITY),
    ...way.left.map((sentence) => `not rolled back: ${sentence}`),
    ...(snapshot.plan.controls.abort === undefined ? [] : ['The abort of the Plan is removed.']),
    ...way.notes,
  ];
}
