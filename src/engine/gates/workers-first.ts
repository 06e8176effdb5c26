/** Gate: on the way back to an older version, no controller moves before every worker of the plan has gone back. */
import { inState } from '../model/rollout.ts';
import { type Gate, PASS, wait } from './types.ts';

/** This gate never stops a target, because the workers can still go back. */
export const workersFirst: Gate = {
  name: 'workers-first',
  ofRollout: true,
  evaluate({ stage, earlier }) {
    if (stage.goesBack !== true || stage.role !== 'controller') return PASS;
    const workers = earlier.filter(({ role }) => role === 'worker');
    const left = workers.flatMap((each) =>
      each.targets.filter((target) => !inState(each, 'done').includes(target)),
    );
    const [first, ...others] = left.map(({ name }) => name);
    if (first === undefined) return PASS;
    const more = others.length === 0 ? '' : ` and ${others.length} more`;
    return wait(
      'KubeletAhead',
      `${first}${more} did not go back, and controllers go back after all workers`,
      'those workers go back (refit retry), or the plan is aborted and run again',
    );
  },
};
