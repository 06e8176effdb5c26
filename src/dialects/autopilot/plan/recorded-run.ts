/**
 * Keeps the run of a Plan in its status, whose schema has no field for it: the description of the first command is JSON with
 * the run, the generation and the message. The status of the first run stays as the original writes it.
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

/** `plan` names no StatusShards: its first description is the plain one. */
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

/** With the description that the first run would have. */
export function withoutRecordedRun(plan: Plan): Plan {
  return recordedRunIn(plan) === undefined ? plan : withCommands(plan, withoutRun);
}

function withoutRun(command: CommandStatus, index: number): CommandStatus {
  if (index > 0) return command;
  const { description, ...rest } = command;
  const message = described.safeParse(parseJson(description)).data?.message;
  return message === undefined ? rest : { ...rest, description: message };
}
