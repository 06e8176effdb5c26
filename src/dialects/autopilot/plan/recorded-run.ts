/**
 * Records the number of the run in the status of a Plan, and the spec that the run uses. The schema of the status has
 * no fields for them, so the description of the first command is JSON that contains them. If the run applies edits of
 * the Plan and is its first run, neither of them is recorded, so its status is the same as the original writes it. An
 * edited id is the exception: the id of the run is recorded then, because the spec no longer has it.
 */
import { z } from 'zod';
import {
  type CommandStatus,
  idOfPlan,
  type Plan,
  type PlanCommand,
  planSchema,
  type TargetSpec,
} from '../../../api/autopilot/plan.ts';
import { idOfRun, isGeneration, type RecordedRun, runIdOn } from '../../../engine/model/runs.ts';
import { parseJson } from '../../../util/json.ts';
import { withCommands } from './status-shards/target-lists.ts';

const generation = z.custom<number>(isGeneration);
const { id, commands } = planSchema.shape.spec.shape;
const startedSpec = z.object({ id, commands });
const described = z.looseObject({
  run: generation.exactOptional(),
  id: z.string().exactOptional(),
  generation,
  started: startedSpec.exactOptional(),
  message: z.string().exactOptional(),
});

/** The id and the commands of a Plan's spec, without the names of nodes. */
type StartedSpec = z.input<typeof startedSpec>;

export interface RecordedSpec {
  /** The number of the run; undefined for the first run of the Plan. */
  readonly run?: number | undefined;
  /** The id of the run; undefined as long as the id of the Plan was not edited. */
  readonly id?: string | undefined;
  /** `metadata.generation` of the newest spec that the run has used. */
  readonly generation: number;
  /** The spec of that generation, if the run ignores edits; otherwise undefined. */
  readonly started?: StartedSpec | undefined;
}

/**
 * Returns the number and generation of the recorded run; undefined for the first run. The description in `plan` must not name
 * StatusShards.
 */
export function recordedRunIn(plan: Pick<Plan, 'status'>): RecordedRun | undefined {
  const { run, generation: newest } = recordedSpecIn(plan) ?? {};
  return run === undefined || newest === undefined ? undefined : { run, generation: newest };
}

/** Returns the recorded run and spec; undefined if none is recorded. The description in `plan` must not name StatusShards. */
export function recordedSpecIn({ status }: Pick<Plan, 'status'>): RecordedSpec | undefined {
  const found = described.safeParse(parseJson(status?.commands[0]?.description)).data;
  return (
    found && {
      run: found.run,
      id: found.id,
      generation: found.generation,
      started: found.started,
    }
  );
}

/**
 * Returns the id of the recorded run of the Plan. It is the id that the leader gave to the run; if nothing has that id,
 * it is made from the id that the Plan has now. The description in `plan` must not name StatusShards.
 */
export function idOfRecordedRun(plan: Plan): string {
  const { run, id, started } = recordedSpecIn(plan) ?? {};
  const carriedOut = started === undefined ? plan : { ...plan, spec: { ...plan.spec, ...started } };
  return id ?? runIdOn(plan, run) ?? idOfRun(idOfPlan(carriedOut), run);
}

export function withRecordedSpec(plan: Plan, recorded: RecordedSpec): Plan {
  const { run, id: idOfRecord, generation: newest, started } = recorded;
  return withCommands(plan, (command, index) => {
    if (index > 0) return command;
    const { description: message } = command;
    const found = {
      ...(run === undefined ? {} : { run }),
      ...(idOfRecord === undefined ? {} : { id: idOfRecord }),
      generation: newest,
      ...(message === undefined ? {} : { message }),
      ...(started === undefined ? {} : { started }),
    };
    return { ...command, description: JSON.stringify(found) };
  });
}

/** Returns the part of the spec to record. The names of nodes are left out, because the lists of targets in the status have them. */
export function startedSpecOf({ spec }: Plan): StartedSpec {
  const { id } = spec;
  return { ...(id === undefined ? {} : { id }), commands: spec.commands.map(withoutNames) };
}

function withoutNames({ k0supdate, airgapupdate, ...rest }: PlanCommand): PlanCommand {
  const command: PlanCommand = { ...rest };
  if (k0supdate !== undefined) {
    const { controllers, workers } = k0supdate.targets;
    command.k0supdate = {
      ...k0supdate,
      targets: {
        ...(controllers === undefined ? {} : { controllers: withoutList(controllers) }),
        ...(workers === undefined ? {} : { workers: withoutList(workers) }),
      },
    };
  }
  if (airgapupdate !== undefined)
    command.airgapupdate = { ...airgapupdate, workers: withoutList(airgapupdate.workers) };
  return command;
}

function withoutList(targets: TargetSpec): TargetSpec {
  return targets.discovery.static === undefined
    ? targets
    : { ...targets, discovery: { ...targets.discovery, static: {} } };
}

/** Returns the plan without the recorded run and spec: its description is the plain text that the original writes. */
export function withoutRecordedSpec(plan: Plan): Plan {
  return recordedSpecIn(plan) === undefined ? plan : withCommands(plan, withoutSpec);
}

function withoutSpec(command: CommandStatus, index: number): CommandStatus {
  if (index > 0) return command;
  const { description, ...rest } = command;
  const message = described.safeParse(parseJson(description)).data?.message;
  return message === undefined ? rest : { ...rest, description: message };
}
