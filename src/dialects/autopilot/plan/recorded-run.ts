/**
 * Keeps the run of a Plan in its status. The schema of the status has no field for it, so the description of the first
 * command is JSON with the run, the generation and the message. For the first run the status stays as the original
 * writes it.
 */
import { z } from 'zod';
import type { CommandStatus, Plan } from '../../../api/autopilot/plan.ts';
import { isGeneration, type RecordedRun } from '../../../engine/model/runs.ts';
import { parseJson } from '../../../util/json.ts';
import { withCommands } from './status-shards/target-lists.ts';

const generation = z.custom<number>(isGeneration);
const described = z.looseObject({
  run: generation,
  generation,
  message: z.string().exactOptional(),
});

/** Returns the recorded run; undefined for the first one. The description in `plan` must not name StatusShards. */
export function recordedRunIn({ status }: Pick<Plan, 'status'>): RecordedRun | undefined {
  const found = described.safeParse(parseJson(status?.commands[0]?.description)).data;
  return found && { run: found.run, generation: found.generation };
}

export function withRecordedRun(plan: Plan, { run, generation }: RecordedRun): Plan {
  return withCommands(plan, (command, index) => {
    if (index > 0) return command;
    const { description: message } = command;
    const found = { run, generation, ...(message === undefined ? {} : { message }) };
    return { ...command, description: JSON.stringify(found satisfies z.infer<typeof described>) };
  });
}

/** Returns the plan with the description that the first run would have. */
export function withoutRecordedRun(plan: Plan): Plan {
  return recordedRunIn(plan) === undefined ? plan : withCommands(plan, withoutRun);
}

function withoutRun(command: CommandStatus, index: number): CommandStatus {
  if (index > 0) return command;
  const { description, ...rest } = command;
  const message = described.safeParse(parseJson(description)).data?.message;
  return message === undefined ? rest : { ...rest, description: message };
}
