/** Waits for the hooks that a policy runs after the plan. This process runs the hooks, so it must not end before they have ended. */
import { loadOnce } from '../../../cli/status/load.ts';
import type { ControllerProcess } from '../../../composition/controller-process.ts';
import { planHookFailures } from '../../../engine/report/failed-plan-hooks.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import { dueAfterPlan } from '../../../engine/turn/hooks-after-plan.ts';
import { sleep } from '../../../util/clock.ts';
import type { KubeadmSession } from './upgrade-session.ts';

const RECHECK_MS = 50;
/**
 * The milliseconds to wait for the result of a hook after its timeout. They are needed because a Job may report late
 * that its deadline has passed.
 */
const GRACE_MS = 60_000;

/**
 * Resolves when all hooks that run after the plan have ended, or when the timeout of a hook and a grace period are
 * over. Prints the name of the hook for which it waits, and the hooks that have failed. A failure of a hook does not
 * change the result of the plan.
 */
export async function untilHooksEnded(
  {
    client,
    clock,
    output,
    abort,
  }: Pick<KubeadmSession, 'client' | 'clock' | 'abort'> & {
    readonly output: Pick<KubeadmSession['output'], 'write'>;
  },
  controller: Pick<ControllerProcess, 'dialects' | 'policyFor' | 'hooksOf'>,
): Promise<void> {
  for (const dialect of controller.dialects) {
    const loaded = await loadOnce(client, dialect, abort);
    for (const plan of loaded.plans()) {
      const policy = controller.policyFor(dialect, plan);
      // The end of the plan is already recorded, so one snapshot is sufficient. Only the results of the hooks still
      // change.
      const ended = gather(dialect, plan, loaded.world, clock.now(), { isReadOnly: true });
      const now = () => {
        const hooks = controller.hooksOf(dialect, plan);
        const snapshot = { ...ended, outside: { ...ended.outside, hooks } };
        return { snapshot, policy, now: clock.now() };
      };
      let awaited: { readonly id: string; readonly until: number } | undefined;
      for (;;) {
        const [run] = dueAfterPlan(now());
        if (run === undefined) break;
        if (run.id !== awaited?.id) {
          awaited = { id: run.id, until: clock.monotonic() + run.hook.timeoutMs + GRACE_MS };
          output.write(`The plan has ended. Waiting for the hook ${run.hook.name}.\n`);
        }
        if (clock.monotonic() >= awaited.until) break;
        await sleep(clock, RECHECK_MS, abort);
      }
      for (const { reason } of planHookFailures(now())) output.write(`${reason.message}\n`);
    }
  }
}
