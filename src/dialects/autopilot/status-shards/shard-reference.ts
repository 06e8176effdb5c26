/**
 * Names the StatusShards of a Plan in the Plan's own status. The description of command 0 then is JSON:
 * `{"message":"…","targets":{"total":5001,"done":7,"failed":0},"statusShards":{"prefix":"autopilot-0a1b2c3d4e","count":26}}`.
 *
 * Not an annotation, because metadata and status are two writes. A leader could die between them, another leader could
 * then replace the status, and `kubectl replace` removes annotations but keeps the status. Each time, part of a record
 * would look like all of it. The description is the only free field in the status that the original's schema allows.
 * The counts give every record another version of the Plan.
 */
import { z } from 'zod';
import type { CommandStatus, Plan } from '../../../api/autopilot/plan.ts';
import { parseJson } from '../../../util/json.ts';

/** The StatusShards are called `<prefix>-0` and so on. */
export interface ShardReference {
  readonly prefix: string;
  readonly count: number;
}

export interface Counts {
  readonly total: number;
  readonly done: number;
  readonly failed: number;
}

const count = z.int().min(0);
const shortStatus = z.strictObject({
  /** The description of a Plan without StatusShards. */
  message: z.string().exactOptional(),
  targets: z.strictObject({ total: count, done: count, failed: count }),
  statusShards: z.strictObject({ prefix: z.string().min(1), count }),
});
type ShortStatus = z.infer<typeof shortStatus>;

export function shardReferenceOf({ status }: Plan): ShardReference | undefined {
  return shortStatusIn(status?.commands[0]?.description)?.statusShards;
}

/** The command with the plain description that a Plan without StatusShards has. */
export function withoutReference(command: CommandStatus): CommandStatus {
  const found = shortStatusIn(command.description);
  if (!found) return command;
  const { description: _, ...rest } = command;
  return found.message === undefined ? rest : { ...rest, description: found.message };
}

export function withShardReference(plan: Plan, statusShards: ShardReference, targets: Counts): Plan {
  if (!plan.status) return plan;
  const { total, done, failed } = targets;
  const commands = plan.status.commands.map((command, index) => {
    if (index > 0) return command;
    const { description: message } = withoutReference(command);
    const found = { ...(message === undefined ? {} : { message }), targets: { total, done, failed }, statusShards };
    return { ...command, description: JSON.stringify(found satisfies ShortStatus) };
  });
  return { ...plan, status: { ...plan.status, commands } };
}

export function shardName({ prefix }: ShardReference, index: number): string {
  return `${prefix}-${index}`;
}

function shortStatusIn(description: string | undefined): ShortStatus | undefined {
  return shortStatus.safeParse(parseJson(description)).data;
}
