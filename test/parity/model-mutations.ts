/**
 * The mutations that the explorer judges. The explorer tries every way in which writes can get lost and processes can
 * end.
 */
import { counterexample, MISTAKES } from '../model/mistakes.ts';
import { type Complaint, type Mutation, mutation } from './mutation.ts';

/**
 * Makes a mutation that runs the same search twice: with the real parts, and with a mistake that the explorer's own
 * tests plant.
 */
function explored(weakness: number, without: string, name: string, breaks: string): Mutation {
  const mistake = MISTAKES.find((each) => each.name === name && each.breaks === breaks);
  if (!mistake) throw new RangeError(`nobody plants "${name}" to break ${breaks}`);
  const search = async (parts: typeof mistake.parts): Promise<Complaint> =>
    (await counterexample({ ...mistake, parts }))?.invariant;
  return mutation({ weakness, without, complaint: breaks }, search, {
    real: {},
    mutated: mistake.parts,
  });
}

export const MODEL_MUTATIONS = [
  explored(
    1,
    'the trial run of what was downloaded',
    'the agent skips the trial run of the new binary',
    'runnable-binary',
  ),
  explored(1, 'the previous binary', 'the agent does not keep the previous binary', 'way-back'),
  explored(
    3,
    'the recorded intent and the fixed order',
    'the leader chooses any target, and continues although no answer confirms the record',
    'one-controller-in-motion',
  ),
  explored(
    38,
    'the check of what is staged',
    'the agent downloads a binary again although the file is already staged',
    'downloaded-once',
  ),
];
