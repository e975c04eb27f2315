//! The neural network, from points to vehicles.

use std::sync::Arc;

use rten::{Model, ModelOptions, RunOptions, ThreadPool, ValueView, op_registry};
use rten_tensor::NdTensorView;
use viaduct_lidar::bev::{self, BirdsEye, CHANNELS, INPUT_VALUES};
use viaduct_lidar::boxes::{self, Detection, OUTPUT_VALUES};

/// The weights that are part of the program. `vehicles.md` describes their training and accuracy.
pub const WEIGHTS: &[u8] = include_bytes!("vehicles.onnx");

/// Score from which a box is reported, 0 to 1. Precision and recall have their largest harmonic mean there, on the validation scenes.
pub const THRESHOLD: f32 = 0.46;

/// Shape of the input: one picture, and each second cell of each second row as a channel of its own.
const INPUT_SHAPE: [usize; 4] = [1, 4 * CHANNELS, bev::CELLS / 2, bev::CELLS / 2];

/// The network with its buffers. One thread computes.
pub struct Network {
    model: Model,
    threads: Arc<ThreadPool>,
    view: BirdsEye,
    input: Vec<f32>,
}

/// The reason why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The file is not ONNX, or the network has operators that are not supported.
    #[error("the model cannot be loaded: {0}")]
    Load(#[from] rten::LoadError),
    /// The computation failed.
    #[error("the network does not run: {0}")]
    Run(#[from] rten::RunError),
    /// The output is not one number for each value of each cell.
    #[error("the output of the model is not 9 x 80 x 80 numbers")]
    Output,
}

impl Network {
    /// Loads a network in ONNX format, and computes once to check the shapes of its input and output.
    ///
    /// # Errors
    /// The file is not a network of vehicles.
    pub fn new(model: &[u8]) -> Result<Self, NetworkError> {
        // Only operators that such a network needs: each one adds to the size of the program.
        let operators = op_registry!(Add, Concat, Conv, ConvTranspose, MaxPool, Mul, Relu, Sigmoid);
        let model = ModelOptions::with_ops(operators).prepack_weights(true).load(model.to_vec())?;
        let threads = Arc::new(ThreadPool::with_num_threads(1));
        let network = Self { model, threads, view: BirdsEye::default(), input: vec![0.0; INPUT_VALUES] };
        network.compute()?;
        Ok(network)
    }

    /// Returns the vehicles with at least a score of `threshold` (0 to 1), the best first. Points are in metres from a sensor at a height
    /// above the ground.
    ///
    /// # Errors
    /// The computation failed.
    pub fn detect(
        &mut self,
        points: impl Iterator<Item = [f32; 3]>,
        sensor_height_m: f32,
        threshold: f32,
    ) -> Result<Vec<Detection>, NetworkError> {
        self.view.draw(points, sensor_height_m);
        self.view.write_input(&mut self.input);
        Ok(boxes::decode(&self.compute()?, threshold))
    }

    /// Returns the output for an input of [`INPUT_VALUES`] values.
    ///
    /// # Errors
    /// The computation failed.
    pub fn output(&mut self, input: &[f32]) -> Result<Vec<f32>, NetworkError> {
        self.input.clear();
        self.input.extend(input);
        self.input.resize(INPUT_VALUES, 0.0);
        self.compute()
    }

    fn compute(&self) -> Result<Vec<f32>, NetworkError> {
        let input = NdTensorView::from_data(INPUT_SHAPE, &self.input[..]);
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.threads)));
        let output = self.model.run_one(ValueView::from(input).into(), Some(options))?;
        let values = output.into_tensor::<f32>().ok_or(NetworkError::Output)?.into_data();
        if values.len() == OUTPUT_VALUES { Ok(values) } else { Err(NetworkError::Output) }
    }
}
