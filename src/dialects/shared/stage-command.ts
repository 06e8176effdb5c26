/** Returns which command of a signal carries out a stage of a rollout. */
import type { Signalling } from '../../engine/model/decision.ts';
import type { Stage } from '../../engine/model/rollout.ts';
import type { SignalCommand } from '../../signal/annotations.ts';

/** Returns the command that makes an agent carry out the stage with this payload. */
export function commandOf(stage: Stage, payload: Signalling['payload']): SignalCommand {
  const { command: id, version, forced } = stage;
  return {
    id,
    kind: kindOf(stage),
    url: '',
    ...payload,
    version,
    ...(forced && { forceupdate: true }),
  };
}

/** Returns the procedure of the stage, or `k0supdate` if the stage names none. */
export function kindOf({ procedure }: Pick<Stage, 'procedure'>): SignalCommand['kind'] {
  return procedure === 'airgapupdate' || procedure === 'kubeadmupdate' ? procedure : 'k0supdate';
}
